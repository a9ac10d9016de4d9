"""One rank's part of a native model, by transformers' own plan for it.

The plan names modules and styles. A column-wise layer keeps some of its outputs, the row-wise one
behind it the matching inputs, and what a row-wise layer gives is summed over the ranks.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from spot.targets.family import TargetError
from spot.targets.parallel.ranks import Ranks
from spot.targets.weights import Share

ROWS, COLUMNS = 0, 1
# Where each style cuts a weight, None: every rank has all of it.
STYLES = {
    "colwise": ROWS,
    "packed_colwise": ROWS,
    "colwise_rep": ROWS,
    "colwise_gather_output": ROWS,
    "rowwise": COLUMNS,
    "moe_tp_experts": None,
    "replicated_with_grad_allreduce": None,
}
SUMMED = frozenset({"rowwise", "moe_tp_experts"})
GATHERED = frozenset({"colwise_rep", "colwise_gather_output"})
MUST_DIVIDE = (
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "moe_intermediate_size",
    "vocab_size",
)


def check_divisible(settings: Mapping[str, Any], size: int) -> None:
    """Raise `TargetError` if the ranks cannot have equal parts."""
    for name in MUST_DIVIDE:
        if settings.get(name, size) % size:
            raise TargetError(
                f"{size} ranks cannot share {name} {settings[name]} equally: choose a "
                "cluster.tensor_parallel that divides it"
            )


def shard(model: Any, ranks: Ranks) -> dict[str, Share]:
    """Cut a model without memory down to one rank's part, in place.

    Returns:
        The parameters that this rank has in part.
    """
    shares: dict[str, Share] = {}
    for name, style in _styles(model):
        dim = STYLES[style]
        if dim is not None:
            share = Share(dim=dim, rank=ranks.rank, size=ranks.size)
            for parameter in _cut(model, name, share):
                shares[parameter] = share
    return shares


def connect(model: Any, ranks: Ranks) -> None:
    """Exchange what the cut layers give; after layers were replaced, names are what counts."""
    for name, style in _styles(model):
        if style in SUMMED and isinstance(_find(model, name), nn.Module):
            _after(_find(model, name), ranks.sum)
        elif style in GATHERED:
            _after(_find(model, name), ranks.concatenate)


def _after(module: Any, exchange: Callable[[Tensor], Tensor]) -> None:
    module.register_forward_hook(lambda _module, _inputs, output: exchange(output))


def _styles(model: Any) -> Iterator[tuple[str, str]]:
    """Names of modules and parameters that the plan cuts, with their styles."""
    plan = {f"model.{name}": style for name, style in model.config.base_model_tp_plan.items()}
    plan |= getattr(type(model), "_tp_plan", None) or {}
    if unknown := set(plan.values()) - STYLES.keys():
        raise TargetError(
            f"transformers' plan for {type(model).__name__} has styles {sorted(unknown)} that are "
            "not known here: use one device, or another release of transformers"
        )
    names = [name for name, _ in model.named_modules()]
    names += [name for name, _ in model.named_parameters()]
    for name in names:
        style = plan.get(re.sub(r"\.\d+\.", ".*.", name))
        if style is not None:
            yield name, style


def _find(model: Any, name: str) -> Any:
    found = model
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _cut(model: Any, name: str, share: Share) -> Iterator[str]:
    """Cut a stacked parameter, or the weights of a linear layer; yields the parameters' names."""
    found = _find(model, name)
    if isinstance(found, nn.Parameter):
        yield from _cut_parameter(model, name, share)
        return
    assert isinstance(found, nn.Linear), f"{name} is no linear layer"
    if share.dim == COLUMNS and found.bias is not None:
        raise TargetError(f"{name} has a bias, which cannot be summed over ranks: use one device")
    for parameter, _ in list(found.named_parameters()):
        yield from _cut_parameter(model, f"{name}.{parameter}", share)
    found.out_features, found.in_features = found.weight.shape


def _cut_parameter(model: Any, name: str, share: Share) -> Iterator[str]:
    owner, _, leaf = name.rpartition(".")
    whole = _find(model, name)
    dim = -1 if share.dim == COLUMNS or whole.ndim == 1 else -2
    part = whole.detach().tensor_split(share.size, dim)[share.rank].contiguous()
    setattr(_find(model, owner), leaf, nn.Parameter(part, requires_grad=False))
    yield name
