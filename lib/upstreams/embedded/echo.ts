/**
 * The answers of the embedded language models. `echo` has no network, no randomness, and no clock unless the prompt asks
 * for a delay; `docs/reference/embedded-models.md` describes it. `fault` is in `fault.ts`.
 */
import type { UnsupportedParameters } from "../../protocols/canonical/unsupported_parameters.ts";
import type { EventTransform, Prompt } from "../../protocols/canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { runSlicedNow, yieldToEventLoop } from "../../scheduler.ts";
import { loadTokenCounter } from "../../o200k/mod.ts";
import { replaceClientTools } from "../../protocols/translate/client_tools.ts";
import { dropUnknownMembers } from "../../protocols/translate/drop_unknown_members.ts";
import { readThinkingMember } from "../../protocols/translate/thinking_member.ts";
import type { Answer, Call, EventFeed } from "../upstream.ts";
import { planAnswer } from "./plan_answer.ts";
import { emitAnswer } from "./emit_answer.ts";
import { generateFault } from "./fault.ts";
import { checkThoughts } from "./thinking.ts";
import { checkVendorRules } from "./vendor_rules.ts";
import { delay } from "../../abort.ts";

/**
 * Answers a call. The target's `model` is `fault` or `echo`. Each `read()` returns one event. If the call's signal is
 * aborted, `read()` rejects with the signal's reason; after `cancel()` it returns `undefined`.
 */
export async function generateEmbedded(call: Call): Promise<Answer> {
  call.signal.throwIfAborted();
  const { dropped, model: row, target: { model } } = call;
  if (model === "fault") return await generateFault(call);
  const { responseContext } = call.client;
  checkVendorRules(responseContext.prompt, responseContext.request);
  // Like Gemini, the model supports no vendor-specific members of any other protocol.
  const dropTarget = { protocol: "gemini", row, dropped } as const;
  const { prompt: functionPrompt, restore } = await runSlicedNow(replaceClientTools(call.prompt, { row }));
  const prompt = readThinkingMember(functionPrompt, dropTarget);
  await runSlicedNow(dropUnknownMembers(prompt, dropTarget));
  addUnsupported(prompt, dropped);
  dropped.refuseIfRequired(prompt);
  checkThoughts(prompt);
  const planned = planAnswer(prompt);
  const counter = await loadTokenCounter();
  const modelMaximum = call.model.top_provider.max_completion_tokens;
  const limits = {
    maxTokens: Math.min(prompt.maxTokens ?? modelMaximum, modelMaximum),
    stop: prompt.stop,
    inputTokens: await call.countInput(),
  };
  const waitForDelta = readDeltaDelay(prompt);
  const steps = emitAnswer(planned, limits, counter);
  return { type: "events", feed: createFeed(steps, { signal: call.signal, waitForDelta, transform: restore?.() }) };
}

function createFeed(
  steps: ReturnType<typeof emitAnswer>,
  { signal, waitForDelta, transform }: {
    signal: AbortSignal;
    waitForDelta: DeltaDelay | undefined;
    transform: EventTransform | undefined;
  },
): EventFeed {
  let over = false;
  const cancelled = new AbortController();
  const aborted = AbortSignal.any([signal, cancelled.signal]);
  return {
    async read() {
      while (!over) {
        signal.throwIfAborted();
        const { done, value } = steps.next();
        if (done === true) {
          over = true;
        } else if (value === undefined) {
          await yieldToEventLoop();
        } else {
          if (waitForDelta !== undefined && value.type === "delta") await waitForDelta(aborted);
          signal.throwIfAborted();
          const events = transform?.(value) ?? [value];
          if (over) return undefined;
          if (events.length > 0) return events;
        }
      }
      return undefined;
    },
    cancel() {
      over = true;
      cancelled.abort();
      steps.return();
    },
  };
}

/** Adds the parameters without an effect to `dropped`, unless they have their neutral value. */
function addUnsupported({ n, sampling, tools }: Prompt, dropped: UnsupportedParameters): void {
  if (n !== undefined && n > 1) {
    throw new GatewayError("invalid", "Cannot return several answers: this model supports one answer per request", {
      param: "n",
    });
  }
  const unsupported: [string, boolean][] = [
    ["top_k", sampling.topK !== undefined],
    ["frequency_penalty", (sampling.frequencyPenalty ?? 0) !== 0],
    ["presence_penalty", (sampling.presencePenalty ?? 0) !== 0],
    ["seed", sampling.seed !== undefined],
    ["logit_bias", Object.keys(sampling.logitBias ?? {}).length > 0],
    ["logprobs", sampling.logprobs === true],
    ["top_logprobs", (sampling.topLogprobs ?? 0) > 0],
  ];
  for (const [name, isUsed] of unsupported) {
    if (isUsed) dropped.add(name);
  }
  for (const tool of tools) {
    if (tool.type === "hosted") dropped.add(`tools.${String(tool.value.type)}`);
  }
}

/** Longest delay before a delta, in milliseconds. */
const MAX_DELAY_MS = 100_000;
/** Longest total delay of one answer, in milliseconds. */
const MAX_TOTAL_MS = 150_000;

/**
 * Waits before each delta of an answer except the first. Ends early when the signal is aborted. Never rejects. A slow
 * stream shows whether a proxy in front of the gateway buffers it.
 */
type DeltaDelay = (signal: AbortSignal) => Promise<void>;

/** Reads the delay from a first line `pace:700ms` of the last user message; `undefined` without such a line. */
function readDeltaDelay({ messages }: Prompt): DeltaDelay | undefined {
  const last = messages.findLast(({ role }) => role === "user")?.blocks.find((block) => block.type === "text");
  const requestedMs = last?.type === "text" ? /^pace:(\d{1,6})ms(?:\n|$)/.exec(last.text)?.[1] : undefined;
  if (requestedMs === undefined) return undefined;
  const pauseMs = Math.min(Number(requestedMs), MAX_DELAY_MS);
  let leftMs = MAX_TOTAL_MS;
  let first = true;
  return async (signal) => {
    const ms = first ? 0 : Math.min(pauseMs, leftMs);
    first = false;
    leftMs -= ms;
    if (ms > 0) await delay(ms, signal).catch(() => {});
  };
}
