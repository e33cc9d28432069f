/** Faults for rehearsals: their names, the answers they disturb, and a server that plays them over real sockets. */
export { answerEvents, requestedFault } from "./answer_events.ts";
export { FAULTS, readFault, type RequestedFault } from "./faults.ts";
export { startFaultServer } from "./server.ts";
