/** The headers of an answer: its target, and the changes of its request. */
import type { AnswerHeader } from "../server/router.ts";
import { droppedHeader } from "./dropped_header.ts";
import type { RequestState } from "./state.ts";
import { headersOfAttempt } from "./targets.ts";

/** Headers that name the parameters which are unsupported, and the limit that the gateway set. */
export function changeHeaders(state: RequestState): AnswerHeader[] {
  const { cap } = state.admittedAs(state.attempt?.model);
  const headers = droppedHeader(state.dropped);
  if (cap !== undefined) headers.push(["x-sluice-max-tokens", String(cap.tokens)]);
  return headers;
}

/** Adds the headers that the upstream sent for the client, and those that name the target and the changes of the request. */
export function addAnswerHeaders(state: RequestState): void {
  const { attempt, forwarded, context: { answerHeaders } } = state;
  // First, as later headers replace earlier ones of the same name.
  if (forwarded !== undefined) answerHeaders.push(...forwarded);
  if (attempt !== undefined) answerHeaders.push(...headersOfAttempt(attempt));
  answerHeaders.push(...changeHeaders(state));
}
