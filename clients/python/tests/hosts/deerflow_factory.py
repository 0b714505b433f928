"""DeerFlow's own factory of agents, with its middlewares for errors, dangling calls, loops and questions around the gate's middleware."""

import functools

from deerflow.agents.factory import create_deerflow_agent
from deerflow.agents.features import RuntimeFeatures

from hosts.langchain import converse_with
from tollgate.deerflow import TollgateMiddleware

BREAKS = "tollgate.deerflow.TollgateMiddleware._scope"
LACKS = set()


def create(model, tools, middleware):
    # A sandbox takes the application's file of settings.
    return create_deerflow_agent(model, tools, features=RuntimeFeatures(sandbox=False), extra_middleware=middleware)


converse_with = functools.partial(converse_with, make=TollgateMiddleware, create=create)
