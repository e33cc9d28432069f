/**
 * Faults for testing clients and gateways: their names, the disturbed answers, and a server that produces them over
 * real sockets.
 */
export { answerEvents, requestedFault } from "./answer_events.ts";
export { FAULTS, readFault, type RequestedFault } from "./faults.ts";
export { startFaultServer } from "./server.ts";
