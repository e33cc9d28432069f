/** Counts the input tokens of a request in the messages protocol, without sending it to an upstream. */
import { requireCaller } from "../access/permissions.ts";
import { jsonResponse } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";
import { countPrompt } from "../billing/count_prompt.ts";
import { writeLongParts } from "../billing/prompt_parts.ts";
import { loadTokenCounter } from "../o200k/mod.ts";
import { documentSize } from "../json/mod.ts";
import { LONG_TEXT_CHARS, runSliced, runToEnd } from "../scheduler.ts";
import type { ClientPermissions } from "../protocols/codec.ts";
import { checkBody } from "../protocols/fields.ts";
import { checkVersion, countTokensSchema, readCountSteps, writeCount } from "../protocols/messages/mod.ts";
import { findModel } from "./candidates.ts";

/**
 * Returns the permissions of a request that is only counted. Nothing is sent to a vendor, so every tool and item passes.
 */
export function countingPermissions({ caller }: RouteContext): ClientPermissions {
  return { vendorState: requireCaller(caller).group.vendor_state === true, checkTool() {}, checkItem() {} };
}

/** Answers `POST /anthropic/v1/messages/count_tokens`: counts system, tools, messages and media in o200k tokens. */
export async function countTokens(request: Request, context: RouteContext): Promise<Response> {
  checkVersion(request.headers.get("anthropic-version"));
  const body = await context.readJson();
  const { value } = body;
  const isLong = documentSize(body) > LONG_TEXT_CHARS;
  checkBody(countTokensSchema, value);
  const steps = readCountSteps(value, countingPermissions(context));
  const prompt = isLong ? await runSliced(steps) : runToEnd(steps);
  findModel(prompt.model, context);
  if (isLong) await writeLongParts(prompt);
  return jsonResponse(writeCount(await countPrompt(prompt, await loadTokenCounter())));
}
