"""LangChain's agents with the middleware of DeerFlow, which DeerFlow loads by class path and puts into such agents."""

import functools

from hosts.langchain import Model, converse_with, model_that_calls, names_of_snippet, work_on
from tollgate.deerflow import TollgateMiddleware

__all__ = ["Model", "converse_with", "model_that_calls", "names_of_snippet", "work_on"]
BREAKS = "tollgate.deerflow.TollgateMiddleware._scope"
LACKS = set()
converse_with = functools.partial(converse_with, make=TollgateMiddleware)
