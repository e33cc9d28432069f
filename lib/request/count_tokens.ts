/** Counts the input tokens of requests without sending them to an upstream, and serves this in the messages protocol. */
import { requireCaller } from "../access/permissions.ts";
import { type AdmissionQueue, createAdmissionQueue } from "../admission_queue.ts";
import { GatewayError } from "../errors.ts";
import { jsonResponse } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";
import { countPrompt } from "../billing/count_prompt.ts";
import { writeLongParts } from "../billing/prompt_parts.ts";
import { COUNTED_AT_ONCE, loadTokenCounter } from "../o200k/mod.ts";
import { documentSize, type ObjectText } from "../json/mod.ts";
import { LONG_TEXT_CHARS, runSlicedNow } from "../scheduler.ts";
import type { Prompt } from "../protocols/canonical/types.ts";
import type { ClientPermissions } from "../protocols/codec.ts";
import { checkBody } from "../protocols/fields.ts";
import { checkVersion, countTokensSchema, readSteps } from "../protocols/messages/mod.ts";
import { findModel } from "./candidates.ts";

/**
 * Returns the permissions of a request that is only counted. Nothing is sent to a vendor, so every tool and item passes.
 */
export function countingPermissions({ caller }: RouteContext): ClientPermissions {
  return { vendorState: requireCaller(caller).group.vendor_state === true, checkTool() {}, checkItem() {} };
}

/**
 * Maximum number of prompts of a queue that are counted concurrently. Counts run in slices, and a request with a long
 * body waits for one slice of each count at each of its own steps: 100 prompts of 350 KB delayed a request of 600 KB
 * from 0.1 to 6 seconds.
 */
const MAX_COUNTS = 4;

/** The queue of the prompts of all keys that are counted in slices. */
const counts = countQueue();
/** Longer prompts have a separate queue: each may take many seconds, and would delay the others. */
const longCounts = countQueue();

function countQueue(): AdmissionQueue {
  return createAdmissionQueue({
    concurrent: MAX_COUNTS,
    waiting: 64,
    waitMs: 60_000,
    busy: () =>
      new GatewayError("limited", "Cannot count another long prompt now: too many are being counted", {
        retryAfterMs: 2_000,
      }),
  });
}

/**
 * Counts a prompt that is not sent to an upstream.
 * @throws {GatewayError} `limited` if too many long prompts are being counted; the signal's reason once it aborts
 */
export async function countInput(
  prompt: Prompt,
  { context: { caller }, body, signal }: {
    context: Pick<RouteContext, "caller">;
    body: ObjectText;
    /** Aborts when the client disconnects. */
    signal: AbortSignal;
  },
): Promise<number> {
  const counter = await loadTokenCounter();
  const size = documentSize(body);
  if (size <= COUNTED_AT_ONCE) return await countPrompt(prompt, counter);
  const leave = await (size > LONG_TEXT_CHARS ? longCounts : counts).enter(signal, requireCaller(caller));
  try {
    await writeLongParts(prompt);
    return await countPrompt(prompt, counter, signal);
  } finally {
    leave();
  }
}

/** Answers `POST /anthropic/v1/messages/count_tokens`: counts system, tools, messages and media in o200k tokens. */
export async function countTokens(request: Request, context: RouteContext): Promise<Response> {
  checkVersion(request.headers.get("anthropic-version"));
  const body = await context.readJson();
  checkBody(countTokensSchema, body.value);
  const prompt = await runSlicedNow(readSteps(body.value, countingPermissions(context)));
  findModel(prompt.model, context);
  return jsonResponse({ input_tokens: await countInput(prompt, { context, body, signal: request.signal }) });
}
