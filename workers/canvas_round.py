"""One round of a target that looks both ways, as a plain description: what is evaluated for whom.

Nothing is decided after this. Equal canvases are opened once, and equal states behind the same
opening are evaluated once; every sample keeps its own walk.
"""

from dataclasses import dataclass, field

from spot.drafters.base import Drafts, no_drafts
from spot.targets.base import Canvas, CanvasUnit, State
from workers.canvas_sample import CanvasSample
from workers.costs import ForwardSize
from workers.rounds import Entry


@dataclass(slots=True, kw_only=True)
class CanvasRound:
    """Canvases that are opened, then states of open blocks.

    ``openers`` are the samples of each canvas. An entry's indices count canvases first; all
    openings must be added before the first state.
    """

    entries: list[Entry] = field(default_factory=list)
    samples: list[CanvasSample] = field(default_factory=list)  # of the entries
    canvases: list[Canvas] = field(default_factory=list)
    openers: list[list[CanvasSample]] = field(default_factory=list)
    units: list[CanvasUnit] = field(default_factory=list)
    _canvas_of: dict[tuple[int, bytes], int] = field(default_factory=dict)
    _index_of: dict[tuple[int, bytes], int] = field(default_factory=dict)

    @property
    def going(self) -> list[Entry]:
        """The entries of samples whose block was open before."""
        num_opening = sum(map(len, self.openers))
        return self.entries[num_opening:]

    def size(self, *, num_rows: int) -> ForwardSize:
        """What evaluating the states computes; openings are forwards of their own."""
        length = self.samples[0].length
        seen = sum(unit.opened.keys[0].shape[1] + length for unit in self.units)
        return ForwardSize(length * len(self.units), length * seen, num_rows)

    def open(self, sample: CanvasSample) -> None:
        """Open a sample's next block."""
        assert not self.units, "openings come first"
        canvas = Canvas(sample.canvas, sample.sequence.start)
        name = canvas.start, canvas.tokens.tobytes()
        if name not in self._canvas_of:
            self._canvas_of[name] = len(self.canvases)
            self.canvases.append(canvas)
            self.openers.append([])
        index = self._canvas_of[name]
        self.openers[index].append(sample)
        sample.sequence.trajectory.cost.positions += len(canvas.tokens)
        self._add(sample, no_drafts(sample.length), [index])

    def go_on(self, sample: CanvasSample, drafts: Drafts) -> None:
        """Evaluate the root of an open block, and its drafts."""
        states = [sample.sequence.root, *drafts.states]
        indices = [self._state(sample, state) for state in states]
        sample.sequence.trajectory.cost.positions += len(set(indices)) * sample.length
        self._add(sample, drafts, indices)

    def _state(self, sample: CanvasSample, state: State) -> int:
        assert sample.opened is not None, "the block is open"
        name = id(sample.opened), state.tobytes()
        if name not in self._index_of:
            self._index_of[name] = len(self.canvases) + len(self.units)
            self.units.append(CanvasUnit(state=state, opened=sample.opened))
        return self._index_of[name]

    def _add(self, sample: CanvasSample, drafts: Drafts, indices: list[int]) -> None:
        sequence = sample.sequence
        cost = sequence.trajectory.cost
        cost.nfe, cost.rounds = cost.nfe + 1, cost.rounds + 1
        cost.drafted += len(drafts.states)
        self.samples.append(sample)
        self.entries.append(
            Entry(
                sequence=sequence,
                drafts=drafts,
                states=[sequence.root, *drafts.states],
                indices=indices,
                masses=[1.0, *drafts.masses.tolist()],
                steps=[sequence.step, *(sequence.step + drafts.depths).tolist()],
            )
        )
