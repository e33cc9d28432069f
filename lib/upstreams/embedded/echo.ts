/**
 * The embedded model `echo`: no network and no randomness, and no clock but where a pace was asked for.
 * `docs/embedded-models.md` says what it does.
 */
import type { UnsupportedParameters } from "../../protocols/canonical/unsupported_parameters.ts";
import type { Prompt } from "../../protocols/canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { yieldToEventLoop } from "../../scheduler.ts";
import { loadTokenCounter } from "../../o200k/mod.ts";
import { requireAllParameters } from "../../protocols/translate/require_all_parameters.ts";
import { dropUnknownMembers } from "../../protocols/translate/drop_unknown_members.ts";
import type { EventFeed, Upstream } from "../upstream.ts";
import { answer } from "./answer.ts";
import { type Pace, readPace } from "./pace.ts";
import { spell } from "./spell.ts";
import { checkThoughts, ISSUER } from "./thinking.ts";
import { checkVendorRules } from "./vendor_rules.ts";

/**
 * The model as an upstream. Its feeds give one event at a time and make it when it is asked for. Once the call's signal is
 * aborted, `read()` rejects with the signal's reason; after `cancel()` it gives `undefined`.
 */
export function createEcho(): Upstream {
  return {
    checksContext: false,
    issuerOf: () => ISSUER,
    close: () => {},
    async generate(call) {
      call.signal.throwIfAborted();
      const { prompt, dropped } = call;
      const { echo } = call.client;
      checkVendorRules(echo.prompt, echo.request);
      // No protocol's own members mean anything here, as at Gemini.
      dropUnknownMembers(prompt, { protocol: "gemini", dropped });
      nameLosses(prompt, dropped);
      requireAllParameters(prompt, dropped);
      checkThoughts(prompt);
      const planned = answer(prompt);
      const counter = await loadTokenCounter();
      const most = call.model.top_provider.max_completion_tokens;
      const limits = {
        maxTokens: Math.min(prompt.maxTokens ?? most, most),
        stop: prompt.stop,
        inputTokens: await call.countInput(),
      };
      const pace = readPace(prompt);
      return { type: "events", feed: createFeed(spell(planned, limits, counter), { signal: call.signal, pace }) };
    },
  };
}

function createFeed(
  steps: ReturnType<typeof spell>,
  { signal, pace }: { signal: AbortSignal; pace: Pace | undefined },
): EventFeed {
  let over = false;
  const cancelled = new AbortController();
  const waking = AbortSignal.any([signal, cancelled.signal]);
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
          if (pace !== undefined && value.type === "delta") await pace.wait(waking);
          signal.throwIfAborted();
          return over ? undefined : [value];
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

/** Names what has no effect here, in the client's words. A knob at the value that changes nothing is no loss. */
function nameLosses({ n, sampling, tools }: Prompt, dropped: UnsupportedParameters): void {
  if (n !== undefined && n > 1) {
    throw new GatewayError("invalid", "Cannot give several answers: this model supports one answer per request", {
      param: "n",
    });
  }
  const losses: [string, boolean][] = [
    ["top_k", sampling.topK !== undefined],
    ["frequency_penalty", (sampling.frequencyPenalty ?? 0) !== 0],
    ["presence_penalty", (sampling.presencePenalty ?? 0) !== 0],
    ["seed", sampling.seed !== undefined],
    ["logit_bias", Object.keys(sampling.logitBias ?? {}).length > 0],
    ["logprobs", sampling.logprobs === true],
    ["top_logprobs", (sampling.topLogprobs ?? 0) > 0],
  ];
  for (const [name, lost] of losses) {
    if (lost) dropped.add(name);
  }
  for (const tool of tools) {
    if (tool.type === "hosted") dropped.add(`tools.${String(tool.value.type)}`);
  }
}
