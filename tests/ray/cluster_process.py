"""A cluster of two nodes with a job server, in a process of its own; it ends with its stdin.

The environment decides about tokens. One line of JSON on stdout says where the job server is.
"""

import json
import sys

from ray.cluster_utils import Cluster

STORE_BYTES = 128 * 1024 * 1024
# A node with a place for one worker. Its agent, which starts submitted drivers, would listen at one
# port of the machine whatever the node; 0 is any that is free.
NODE = {
    "num_cpus": 1,
    "num_gpus": 0,
    "object_store_memory": STORE_BYTES,
    "dashboard_agent_listen_port": 0,
}


def main() -> None:
    """Run until stdin ends."""
    cluster = Cluster(
        initialize_head=True, connect=False, head_node_args=NODE | {"include_dashboard": True}
    )
    try:
        cluster.add_node(**NODE)
        print(json.dumps({"url": f"http://{cluster.head_node.webui_url}"}), flush=True)
        sys.stdin.read()
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
