/** Settles an answer: reads or counts its tokens, and charges an answer that is not streamed in the ledger. */
import type { BilledTokens, UsageSource } from "../store/ledger.ts";
import { type HostedCalls, hostedCallsOf, type UsedExtras, usedExtras } from "../billing/extras.ts";
import type { Amount } from "../billing/money.ts";
import { isEstimated } from "../billing/prompt_parts.ts";
import { CLIENT_DISCONNECTED } from "./request_meter.ts";
import type { TargetReply } from "./send_to_targets.ts";
import type { RequestState } from "./state.ts";
import type { FinishReason, Prompt, TokenUsage } from "../protocols/canonical/types.ts";
import { otherBlocks } from "./other_answers.ts";
import { readUsage, type UsageReading } from "../billing/price.ts";
import { countReply, type ReplyTokens } from "../billing/count_prompt.ts";
import { loadTokenCounter } from "../o200k/mod.ts";

/** The charge of an answer that is not streamed. */
export interface SettledReply {
  tokens: BilledTokens;
  /** The sources of the numbers of tokens. */
  source: UsageSource;
  cost: Amount;
}

/** Charges an answer that is not streamed. @throws {GatewayError} `overloaded` if the ledger cannot take the entry */
export async function settleReply(
  { reply, admitted: { prompt }, countInput }: TargetReply,
  { codec: { protocol }, meter, clientHasDisconnected }: RequestState,
): Promise<SettledReply> {
  meter.entry.recordFirstOutput();
  const readBlocks = () => "text" in reply ? reply.readBlocks() : reply.blocks;
  const hostedCalls = hostedCallsOf(prompt);
  if (hostedCalls !== undefined) { for (const block of await readBlocks()) hostedCalls.take(block); }
  const charged = await readTokens({ usage: reply.usage, finish: reply.finish, hostedCalls }, {
    countInput,
    prompt,
    countOutput: async () => {
      const { n = 1 } = prompt;
      const others = n > 1 && "text" in reply ? await otherBlocks(reply.text, { protocol, n }) : [];
      return await countReply([...await readBlocks(), ...others], await loadTokenCounter());
    },
  });
  const cost = await meter.deliver({
    status: clientHasDisconnected ? CLIENT_DISCONNECTED : 200,
    ending: clientHasDisconnected ? "client_disconnected" : reply.finish,
    ...charged,
  });
  return { tokens: charged.tokens, source: charged.source, cost };
}

/** Counts tokens that the upstream does not report. */
export interface TokenCounts {
  /** Returns the size of the prompt in o200k tokens. */
  countInput: () => Promise<number>;
  /** The prompt. The size of one with images or files is an estimate. */
  prompt: Pick<Prompt, "messages" | "plain">;
  /** Returns the size of the answer in o200k tokens. */
  countOutput: () => Promise<ReplyTokens>;
}

/** Tokens to charge, and where their numbers come from. */
export interface ChargedTokens {
  tokens: BilledTokens;
  source: UsageSource;
  /** Billed items besides tokens; absent if there are none. */
  used?: UsedExtras;
}

/** An answer that has ended. */
export interface EndedAnswer {
  /** The usage that the upstream reported. */
  usage: TokenUsage;
  /** Absent if the answer did not reach its end. */
  finish?: FinishReason;
  /** Counted calls of hosted tools; absent if no such tool could run. */
  hostedCalls?: HostedCalls | undefined;
}

/**
 * Returns the tokens that the upstream reports, and counts those that it does not report or reports implausibly. An
 * answer of 0 tokens is counted as well, because some hosts report 0 for unknown. A refusal of 0 tokens is accepted if
 * the upstream reports the prompt's tokens: the vendor, not the model, may have written it.
 */
export function readTokens(
  { usage, finish, hostedCalls }: EndedAnswer,
  counts: TokenCounts,
): ChargedTokens | Promise<ChargedTokens> {
  const used = hostedCalls === undefined ? usedExtras(usage) : hostedCalls.used(usage);
  const reading = readUsage(usage);
  const { tokens, missing, counted } = reading;
  const isDoubtful = tokens.completion === 0 && (missing.output || finish !== "refusal");
  if (missing.input || isDoubtful) return countMissing(reading, counts, used);
  return { tokens, source: sourceOf(counted), ...(used !== undefined && { used }) };
}

async function countMissing(
  { tokens, missing, counted }: UsageReading,
  { countInput, prompt, countOutput }: TokenCounts,
  used: UsedExtras | undefined,
): Promise<ChargedTokens> {
  const output = tokens.completion === 0 ? await countOutput() : undefined;
  const differs = output !== undefined && output.completion > 0;
  let input = counted;
  if (missing.input) input = isEstimated(prompt) ? "estimated" : true;
  return {
    tokens: { ...tokens, ...(missing.input && { prompt: await countInput() }), ...output },
    source: sourceOf(input || missing.output || differs),
    ...(used !== undefined && { used }),
  };
}

function sourceOf(counted: UsageReading["counted"]): UsageSource {
  if (counted === "estimated") return "estimated";
  return counted ? "counted" : "upstream";
}
