/** A conformance suite: claims about what a gateway sends, checked against any gateway over HTTP. */
export { SUITE_PARTS, type SuitePart } from "./check.ts";
export { reportJson, reportText } from "./report.ts";
export { runSuite, UnreachableGateway } from "./run.ts";
