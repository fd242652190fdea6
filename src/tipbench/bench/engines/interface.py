"""The interface of engines. Model names include the engine's prefix, as the user wrote them."""

from typing import Protocol

from tipbench.bench.records import Generation, GenerationRequest, ModelInfo, ResidentModel

CONTEXT_TOKENS = 4096  # requested on every load: prompt and answer must fit, and memory use is predictable
IN_PROCESS = "in process"


class Engine(Protocol):
    """A server or library that runs models."""

    name: str
    address: str  # a URL to show, or IN_PROCESS
    default_concurrency: int  # requests at once, unless the user sets it
    exclusive: bool  # loads models on request, so two concurrent collections would load two
    offered: bool  # whether `doctor` and the run form list it; False for test engines and if it is not set up
    advice: str  # what to do if it has no models

    def describe(self, model: str) -> ModelInfo:
        """Describe the model. Raises ModelMissing, with advice, if the engine does not have it.

        Set `parameters`: a model of unknown size is refused unless the user lifts the limit. Set `digest` where
        weights can change under one name: it is a part of the cell's key.
        """
        ...

    def models(self) -> list[ModelInfo]:
        """List the available models."""
        ...

    def generate(self, request: GenerationRequest) -> Generation:
        """Generate one answer. Raises EngineError if there is none."""
        ...

    def unload(self, model: str) -> None:
        """Unload the model and return once it is out of memory. Raises EngineError if that fails."""
        ...

    def resident(self) -> list[ResidentModel]:
        """List the models that are in memory now."""
        ...

    def same_model(self, one: str, other: str) -> bool:
        """Whether two names, without the engine's prefix, mean the same model on this engine."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


def loads_on_a_server(engine: Engine) -> bool:
    """Whether the engine loads models into the memory of a server that other clients may also use."""
    return engine.exclusive and engine.address != IN_PROCESS


def bare_name(model: str, engine: str) -> str:
    """Return the model's name without the engine's prefix."""
    return model.removeprefix(f"{engine}/")
