"""The draft-free reference decoder of a loaded target, which defines what its samples are."""

from typing import Protocol

from manifests.job_decode import Decode
from spot.canvas_decoder import CanvasDecoder
from spot.decoder import ReferenceDecoder
from spot.rounds import Sample
from spot.targets.canvas import NativeCanvasTarget
from spot.targets.paged import PagedTarget
from spot.trajectory import Decoded
from spot.transition import Rule

AnyTarget = PagedTarget | NativeCanvasTarget


class Decoder(Protocol):
    """Decodes one sample alone."""

    def decode(self, sample: Sample) -> Decoded:
        """Decode to the end."""


def reference_decoder(target: AnyTarget, decode: Decode, *, rule: Rule) -> Decoder:
    """The decoder that fits a target; without drafts."""
    if isinstance(target, PagedTarget):
        return ReferenceDecoder(target, rule=rule)
    assert decode.cache_context is not None, "a target without exact pages has a context"
    return CanvasDecoder(target, rule=rule, context=decode.cache_context)
