"""The assertion engine: expressions, assertion trees, health checks, and running them.

Lowest first: `jmespath` (expressions), `tree` (assertions on one document), `document` (what a health
check says), `vacuity` (what would prove nothing), `looking` and `runner` (a cluster, polled). The first
four are pure; the last two are asynchronous.
"""
