"""States of a stack in which it cannot be updated, and what to do in each."""

from collections.abc import Iterable

#: States in which a stack can be updated. In REVIEW_IN_PROGRESS, it has only a change set that was
#: never executed, and is created as if it did not exist.
_READY = {
    "CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS",
}
_DELETE = "aws cloudformation delete-stack --stack-name {stack}"
#: Warning against deleting a stack that has been in use.
_COST_OF_DELETION = "Do not delete the stack: its URLs, log groups and alarms would be lost, and the next stack would have new, empty tables."
_ADVICE = {
    "DELETE_IN_PROGRESS": "The stack is being deleted: wait until it is gone (aws cloudformation wait stack-delete-complete --stack-name {stack}).",
    "DELETE_FAILED": "The stack could not be deleted completely. Delete it again, without {failed}, which {verb} then left over: " + _DELETE + " --retain-resources {ids}",
    "CREATE_FAILED": "The creation of the stack failed, so no client has used it. Delete it: " + _DELETE,
    "ROLLBACK_COMPLETE": "The creation of the stack failed, and was rolled back. Delete what is left of it: " + _DELETE,
    "ROLLBACK_FAILED": "The creation of the stack failed, and rolling it back failed as well, at {failed}. Delete what is left of it: " + _DELETE,
    "UPDATE_FAILED": "An update failed, and was not rolled back. Roll it back: aws cloudformation rollback-stack --stack-name {stack}. " + _COST_OF_DELETION,
    "UPDATE_ROLLBACK_FAILED": (
        "An update failed, and rolling it back failed as well, at {failed}. Resolve what the stack's events report, and continue: "
        "aws cloudformation continue-update-rollback --stack-name {stack}. If a resource cannot be rolled back, add --resources-to-skip {ids}. "
        + _COST_OF_DELETION
    ),
    "IMPORT_ROLLBACK_FAILED": (
        "An import of resources failed, and rolling it back failed as well. Resolve what the stack's events report "
        "(aws cloudformation describe-stack-events --stack-name {stack}), or ask AWS Support. " + _COST_OF_DELETION
    ),
}


def problem(state: str, stack: str, failed: Iterable[str]) -> str | None:
    """Returns what to do before the stack can be updated. `failed` has the resources that failed."""
    if state in _READY:
        return None
    if state in _ADVICE:
        names = sorted(failed)
        said = _ADVICE[state].format(
            stack=stack, failed=", ".join(names) or "resources that its events name", ids=" ".join(names) or "RESOURCE", verb="is" if len(names) == 1 else "are"
        )
        return f"{stack} is in the state {state}. {said}"
    if state.endswith("_IN_PROGRESS"):
        return f"Another change of the stack is in progress ({state}): wait until it has finished."
    return f"{stack} is in the state {state}, which this version does not know. See its events: aws cloudformation describe-stack-events --stack-name {stack}"
