/** Faults for rehearsals: their names, the answers they disturb, and a server that plays them over real sockets. */
export { answerEvents, requestedFault } from "./answer_events.ts";
export { type Fault, FAULTS, readFault } from "./faults.ts";
export { startFaultServer } from "./server.ts";
