"""Evaluates the OpenAPI body of an API from a processed template like CloudFormation: conditions
and references are resolved.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NOTHING = object()


@dataclass(frozen=True)
class Processed:
    """A template after its transform, and the values of its parameters and pseudo parameters."""

    template: Mapping[str, Any]
    names: Mapping[str, str]

    def value(self, of: Any) -> Any:
        """Returns the resolved value. Supports only the functions used in the body and the stage of
        an API.
        """
        if isinstance(of, list):
            return [value for value in map(self.value, of) if value is not _NOTHING]
        if not isinstance(of, Mapping):
            return of
        if len(of) == 1:
            [(name, argument)] = of.items()
            if name == "Ref":
                return _NOTHING if argument == "AWS::NoValue" else self.names[argument]
            if name == "Fn::Sub" and isinstance(argument, str):
                return re.sub(r"[$][{]([^}]+)[}]", lambda found: self.names[found[1]], argument)
            if name == "Fn::If":
                return self.value(argument[1 if self.holds(argument[0]) else 2])
            if name.startswith("Fn::"):
                raise NotImplementedError(name)
        values = {name: self.value(value) for name, value in of.items()}
        return {name: value for name, value in values.items() if value is not _NOTHING}

    def holds(self, condition: str) -> bool:
        return self._decide(self.template["Conditions"][condition])

    def _decide(self, said: Mapping[str, Any]) -> bool:
        [(name, arguments)] = said.items()
        if name == "Fn::Equals":
            return str(self.value(arguments[0])) == str(self.value(arguments[1]))
        if name == "Fn::Not":
            return not self._decide(arguments[0])
        if name == "Fn::And":
            return all(map(self._decide, arguments))
        if name == "Condition":
            return self.holds(arguments)
        raise NotImplementedError(name)


@dataclass(frozen=True)
class HttpApi:
    """The routes of an API: for each pattern, the function and whether it requires signed requests.
    Also the rate and the burst of its stage.
    """

    identifier: str
    functions: Mapping[str, str]
    signed: Mapping[str, bool]
    rate: float
    burst: float


def read_api(processed: Processed, resource: str, identifier: str) -> HttpApi:
    """Returns one of the stack's APIs, from its OpenAPI body and the settings of its stage."""
    resources = processed.template["Resources"]
    body = processed.value(resources[resource]["Properties"]["Body"])
    schemes = body.get("components", {}).get("securitySchemes", {})
    functions, signed = {}, {}
    for path, said in body["paths"].items():
        route = said["x-amazon-apigateway-any-method"]
        pattern = "$default" if route.get("isDefaultRoute") else path
        uri = route["x-amazon-apigateway-integration"]["uri"]
        functions[pattern] = re.search(r":function:([\w-]+)/invocations$", uri)[1]
        wanted = [schemes[name]["x-amazon-apigateway-authtype"] for one in route.get("security", []) for name in one]
        assert wanted in ([], ["awsSigv4"]), wanted
        signed[pattern] = bool(wanted)
    [stage] = [one for one in resources.values() if one["Type"] == "AWS::ApiGatewayV2::Stage" and one["Properties"]["ApiId"] == {"Ref": resource}]
    limits = processed.value(stage["Properties"]["DefaultRouteSettings"])
    return HttpApi(identifier, functions, signed, float(limits["ThrottlingRateLimit"]), float(limits["ThrottlingBurstLimit"]))
