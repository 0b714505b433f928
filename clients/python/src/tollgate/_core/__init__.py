"""The client without input or output: events, verdicts, and the steps of an exchange, which both faces carry out."""
