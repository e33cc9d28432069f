/** The tokens that an answer in text is charged for. */
import type { FinishReason, Reply, Usage } from "../canonical/types.ts";
import { readUsage, type UsageReading } from "../metering/billed.ts";
import { countReply, type ReplyTokens } from "../metering/count_prompt.ts";
import { loadTokenCounter } from "../metering/tokens.ts";
import type { BilledTokens, UsageSource } from "../store/ledger.ts";

/** How tokens are counted that the upstream does not tell. */
export interface Counts {
  /** Size of the prompt in o200k tokens. */
  countInput: () => Promise<number>;
  /** Size of the answer in o200k tokens. */
  countOutput: () => Promise<ReplyTokens>;
}

/** Tokens that are charged, and where their numbers come from. */
export interface Charged {
  tokens: BilledTokens;
  source: UsageSource;
}

/** An answer that is over. */
export interface Ended {
  usage: Usage;
  /** Absent: it was given up. */
  finish?: FinishReason;
}

/**
 * What the upstream says, and where it says nothing, or nothing that can be, what the gateway counts. An answer of no
 * token is believed only where the gateway counts none either: some hosts say 0 for what they do not know. One that was
 * refused is believed beside a prompt that has tokens: the words in it may be those of the vendor, not of the model.
 */
export function readTokens({ usage, finish }: Ended, counts: Counts): Charged | Promise<Charged> {
  const reading = readUsage(usage);
  const { tokens, missing, counted } = reading;
  const isDoubtful = tokens.completion === 0 && (missing.output || finish !== "refusal");
  if (missing.input || isDoubtful) return countMissing(reading, counts);
  return { tokens, source: counted ? "counted" : "upstream" };
}

async function countMissing(
  { tokens, missing, counted }: UsageReading,
  { countInput, countOutput }: Counts,
): Promise<Charged> {
  const output = tokens.completion === 0 ? await countOutput() : undefined;
  const disproved = output !== undefined && output.completion > 0;
  return {
    tokens: { ...tokens, ...(missing.input && { prompt: await countInput() }), ...output },
    source: counted || missing.input || missing.output || disproved ? "counted" : "upstream",
  };
}

/** The tokens of a whole answer. */
export function readReplyTokens(
  reply: Reply,
  { countInput }: Pick<Counts, "countInput">,
): Charged | Promise<Charged> {
  return readTokens(reply, {
    countInput,
    countOutput: async () => await countReply(reply.blocks, await loadTokenCounter()),
  });
}
