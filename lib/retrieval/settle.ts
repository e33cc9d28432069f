/** Settles answers with embeddings or reranked documents: their usage, their price, and a durable ledger entry. */
import { readUsage } from "../billing/price.ts";
import { formatUsd } from "../billing/money.ts";
import type { Meter } from "../billing/meter.ts";
import { CLIENT_DISCONNECTED } from "../request/request_meter.ts";
import { NO_TOKENS } from "../store/days.ts";
import { billedSearches } from "./candidate_prices.ts";
import type { RetrievalAnswer } from "./send.ts";
import { countRequest, countSearches } from "./size.ts";
import type { RetrievalRequest } from "./types.ts";

/** The charge of an answer. */
export interface SettledRetrieval {
  tokens: number;
  /** Searches; 0 for embeddings. */
  searches: number;
  cost: string;
}

/**
 * Charges an answer for the usage that its upstream reports, or otherwise for the counted usage.
 * @throws {GatewayError} `overloaded` if the ledger entry cannot be written
 */
export async function settleRetrieval<R extends RetrievalRequest>(
  { answer, candidate, clientHasDisconnected }: RetrievalAnswer<R, { tokens?: number; searches?: number }>,
  meter: Meter,
): Promise<SettledRetrieval> {
  meter.entry.recordFirstOutput();
  const { model, request, searchPrice } = candidate;
  const { tokens: { prompt: reported }, missing } = readUsage({ prompt: answer.tokens, completion: 0 });
  const tokens = missing.input ? await countRequest(request, model) : reported;
  const searches = request.kind === "rerank" ? answer.searches ?? countSearches(request) : 0;
  const extras = billedSearches(searches, searchPrice);
  const cost = await meter.deliver({
    status: clientHasDisconnected ? CLIENT_DISCONNECTED : 200,
    ending: clientHasDisconnected ? "client_disconnected" : "end",
    tokens: { ...NO_TOKENS, prompt: tokens },
    source: missing.input ? "counted" : "upstream",
    ...(extras.length > 0 && { details: { extras } }),
  });
  return { tokens, searches, cost: formatUsd(cost) };
}
