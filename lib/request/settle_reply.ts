/** Settles a whole answer: its usage, its price, and its durable entry in the ledger. */
import type { BilledTokens, UsageSource } from "../store/ledger.ts";
import { hostedCallsOf } from "../billing/extras.ts";
import type { Amount } from "../billing/money.ts";
import { isEstimated } from "../billing/prompt_parts.ts";
import { readReplyTokens } from "./billed_tokens.ts";
import { CLIENT_LEFT } from "./request_meter.ts";
import type { TargetReply } from "./send_to_targets.ts";
import type { RequestState } from "./state.ts";

/** What a whole answer was charged. */
export interface SettledReply {
  tokens: BilledTokens;
  source: UsageSource;
  cost: Amount;
}

/** Charges a whole answer. @throws {GatewayError} `overloaded` where it cannot be entered in the ledger */
export async function settleReply(
  { reply, admitted: { prompt }, countInput }: TargetReply,
  { meter, clientHasLeft }: RequestState,
): Promise<SettledReply> {
  meter.first();
  const charged = await readReplyTokens(reply, {
    countInput,
    isEstimate: () => isEstimated(prompt),
    hostedCalls: hostedCallsOf(prompt),
  });
  const cost = await meter.deliver({
    status: clientHasLeft ? CLIENT_LEFT : 200,
    ending: clientHasLeft ? "abandoned" : reply.finish,
    ...charged,
  });
  return { tokens: charged.tokens, source: charged.source, cost };
}
