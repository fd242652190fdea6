"""How the bench runs a decision: start it, go on round by round, give each judge the next batch, stop it.

Whoever looks at a decision, hands out a batch of it or applies scores to it does so under the experiment's judging
lock: so no item goes to two judges, and every look is on record.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tipbench.bench.decide.rounds import POOL, Round, check_rules, check_same, look, new_plan, stored_options
from tipbench.bench.judge.export import Exported, StoredFor, exclusive_judging
from tipbench.bench.judge.judges.interface import Judge, JudgeName
from tipbench.bench.judge.sample import BatchSize
from tipbench.bench.suites.rubric import Rubric, parse_rubric
from tipbench.bench.tracking.batches import OF_DECISION, batch_file
from tipbench.bench.tracking.decisions import (
    DecisionPlan,
    budget_of,
    find_decision,
    set_budget,
    set_stopped,
    stopped_by,
    write_decision,
)
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.core.errors import EngineError, InvalidInput, JudgeLater, NothingPending
from tipbench.core.text import capital, counted
from tipbench.core.untrusted import printable
from tipbench.core.version import __version__

if TYPE_CHECKING:
    from tipbench.bench.bench import Bench

_DEFAULT_RULES = {"claim": "pool", "good_enough": 0.15}


def start_decision(bench: "Bench", rules: Mapping[str, Any], budget: int | None, options: Mapping[str, Any]) -> None:
    """Start the decision in the bench's experiment, or get ready to go on with the one that it holds.

    Rules and options that are None or not given are those that the decision began with. A decision that somebody
    stopped goes on.
    """
    given = {**bench.given_options, **options}
    bench.set_options(**{"suite": POOL, **given})
    bench.create_store()
    name = bench.options.experiment
    experiment = bench.store.find_experiment(name)
    found = find_decision(bench.store, experiment) if experiment else None
    if experiment is None or found is None:
        _start(
            bench, experiment, {**_DEFAULT_RULES, **{key: one for key, one in rules.items() if one is not None}}, budget
        )
        return
    run, plan = found
    suite = bench.set_options(**stored_options(plan, given))
    check_same(plan, rules, suite.rubric.digest, name)
    if budget is not None and budget != budget_of(run):
        set_budget(bench.store, run, budget, bench.now_ms)
    if stopped_by(run):
        set_stopped(bench.store, run, "", bench.now_ms)


def _start(bench: "Bench", experiment: Experiment | None, rules: Mapping[str, Any], budget: int | None) -> None:
    suite, options = bench.suite, bench.options
    check_rules(**rules, budget=budget)
    if suite.rubric.by_code:
        raise InvalidInput(
            f"suite '{suite.name}' is scored by code alone, so judgements cost nothing and there are none to save; "
            "use 'tipbench collect' and 'tipbench compare'"
        )
    if experiment and OF_DECISION not in experiment.tags:
        raise InvalidInput(
            f"experiment '{experiment.name}' was not made for a decision; choose a new one, such as --experiment "
            f"{suite.experiment_prefix}1"
        )
    plan = new_plan(bench.context.new_id(), bench.context.new_id(), options, suite, bench.now_ms, **rules)
    bench.check_models()
    tags = {"tipbench.suite": suite.name, "tipbench.version": __version__, OF_DECISION: "rounds"}
    created = bench.store.ensure_experiment(options.experiment, tags)
    with _judging(bench, created.name):
        if find_decision(bench.store, created) is None:
            write_decision(bench.store, created, plan, suite.rubric.text, budget)


def go_on(bench: "Bench", judge: "str | Judge | None") -> Round:
    """Generate what the next rounds need and, with an automatic judge, have it judged until there is nothing to do."""
    found = _generate(bench)
    while judge is not None and found.is_open:
        if not _judge_next(bench, judge, found):
            return look_at(bench)
        found = _generate(bench)
        bench.context.observer.judged(found)
    return found


def _generate(bench: "Bench") -> Round:
    found = look_at(bench)
    missing = found.wanted_cells
    if not missing:
        return found
    bench.collect(only=missing, retry_failed=True)
    found = look_at(bench)
    if found.failed:
        raise EngineError(
            f"{counted(len(found.failed), 'cell')} that are to be judged next got no answer, the first with: "
            f"{found.failed[0].failure}; run the same command again to retry them"
        )
    return found


def _judge_next(bench: "Bench", judge: "str | Judge", found: Round) -> bool:
    """Have an automatic judge score its open batch or the next one; return whether its scores count."""
    with bench.open_judge(judge) as opened:
        name = opened.identity
        if name.provisional:
            raise InvalidInput(f"the scores of '{name.name}' are provisional and never count, so it can't decide")
        own = [one for one in found.open_batches if one.batch.judge == name.name]
        if own:
            file = batch_file(bench.store, own[0].run)
        else:
            try:
                file = next_batch(bench, name, "page").file
            except NothingPending as nothing:
                bench.context.observer.note(f"{capital(nothing)}.")
                return False
        try:
            applied = bench.judge_file(opened, file)
        except JudgeLater as later:
            bench.context.observer.note(f"{capital(later)}; run this again once its scores are in.")
            return False
    if applied.in_quarantine:
        bench.context.observer.note(
            f"The scores of '{applied.judge}' are on hold and do not count, so the decision does not go on with this "
            f"judge: {applied.quarantine}."
        )
    return not applied.in_quarantine


def next_batch(bench: "Bench", judge: JudgeName, stored_for: StoredFor) -> Exported:
    """Record the next batch for this judge; raise NothingPending, with the reason, if there is none now."""
    with _judging(bench, bench.options.experiment):
        found = _look(bench)
        candidates = found.next_for(judge.name)
        if not candidates or found.exceeds_budget(judge.name):
            raise NothingPending(_why_nothing(found, judge.name), judge.name)
        return bench.new_batch(judge, BatchSize(only=candidates, decision=found.plan.id), stored_for)


def _why_nothing(found: Round, judge: str) -> str:
    if found.verdict.is_decided:
        return f"nothing is left to judge: {found.verdict.says}"
    if found.verdict.stopped:
        return f"nothing is to be judged now: {found.verdict.stopped}"
    if found.next_for(judge):
        return f"the next batch would exceed the budget of {found.budget} judgements"
    if found.wanted_cells:
        return "the next answers are not generated yet: run 'tipbench decide' on this experiment, which generates them"
    others = sorted({one.batch.judge for one in found.open_batches} - {judge})
    if others:
        return f"the items of the next rounds are with {', '.join(map(printable, others))}; wait for their scores"
    return f"the items that are left belong to other judges: {', '.join(sorted({*found.judges.values()} - {judge}))}"


def look_at(bench: "Bench") -> Round:
    """Return where the decision stands, by the scores so far."""
    with _judging(bench, bench.options.experiment):
        return _look(bench)


def look_after_applying(bench: "Bench") -> None:
    """Bring the account up to date; the caller holds the judging lock."""
    _look(bench)


def stop_decision(bench: "Bench", by: str) -> Round:
    """Stop the decision, for somebody who takes the leader as it is now; `decide` goes on with it."""
    with _judging(bench, bench.options.experiment):
        set_stopped(bench.store, _found(bench)[0], printable(by, 100), bench.now_ms)
        return _look(bench)


def _look(bench: "Bench") -> Round:
    found = _found(bench)
    return look(bench.store, bench.experiment, found, _rubric(bench, found[0]), bench.now_ms)


def _found(bench: "Bench") -> tuple[StoredRun, DecisionPlan]:
    found = find_decision(bench.store, bench.experiment)
    if found is None:
        raise InvalidInput(f"experiment '{bench.options.experiment}' holds no decision; 'tipbench decide' starts one")
    return found


def _rubric(bench: "Bench", run: StoredRun) -> Rubric:
    text = bench.store.text(run, "rubric.md")  # decisions of the first version did not store it
    return bench.rubric if text is None else parse_rubric(text, f"rubric.md of run {run.run_id}")


def _judging(bench: "Bench", experiment: str) -> Any:
    return exclusive_judging(bench.store.address, experiment, bench.context.settings, bench.context.observer.waiting)
