"""``python -m benchmarks`` runs the decoding benchmark."""

from benchmarks.decoding import main

if __name__ == "__main__":
    main()
