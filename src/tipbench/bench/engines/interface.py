"""What every engine can do. Model names carry the engine's prefix, as the user wrote them."""

from typing import Protocol

from tipbench.bench.records import Generation, GenerationRequest, ModelInfo, ResidentModel

CONTEXT_TOKENS = 4096  # asked for on every load: prompt and answer must fit, and memory stays predictable


IN_PROCESS = "in process"


class Engine(Protocol):
    """A server or library that runs models."""

    name: str
    address: str  # for people: a URL or IN_PROCESS
    at_once: int  # requests at once, unless somebody says otherwise
    exclusive: bool  # it loads models at our word, so that two collections at once would load two
    offered: bool  # by `doctor` and by the form for a run: not if it is for tests, or if nobody has set it up
    advice: str  # what to do where it has no models

    def describe(self, model: str) -> ModelInfo:
        """What the model is. Raises ModelMissing, with what to do, when it isn't there."""
        ...

    def models(self) -> list[ModelInfo]:
        """The models that are there to be used."""
        ...

    def generate(self, request: GenerationRequest) -> Generation:
        """One answer. Raises EngineError when there is none."""
        ...

    def unload(self, model: str) -> None:
        """Returns once the model is out of memory. Raises EngineError when it won't leave."""
        ...

    def resident(self) -> list[ResidentModel]:
        """The models in memory now."""
        ...

    def same_model(self, one: str, other: str) -> bool:
        """Whether two names, without the engine's prefix, mean the same model here."""
        ...

    def close(self) -> None:
        """Leaves nothing of ours behind."""
        ...


def loads_on_a_server(engine: Engine) -> bool:
    """Whether the engine loads models into a server's memory, where other clients may have theirs."""
    return engine.exclusive and engine.address != IN_PROCESS


def bare_name(model: str, engine: str) -> str:
    """The model's name without its engine's prefix."""
    return model.removeprefix(f"{engine}/")
