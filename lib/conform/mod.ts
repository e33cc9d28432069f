/** A conformance suite: checks claims about the answers of any gateway over HTTP. */
export { SUITE_PARTS, type SuitePart } from "./check.ts";
export { reportJson, reportText } from "./report.ts";
export { runSuite, UnreachableGateway } from "./run.ts";
