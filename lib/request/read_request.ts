/** Reads a text request: its body within limits, without what its key may not ask for, and its canonical prompt. */
import { requireCaller } from "../access/caller.ts";
import type { Prompt } from "../protocols/canonical/types.ts";
import { writeLongParts } from "../billing/prompt_parts.ts";
import { documentSize } from "../json/mod.ts";
import { checkBody } from "../protocols/fields.ts";
import { LONG_TEXT_CHARS } from "../scheduler.ts";
import { type Screened, screenExtras, withExtras } from "./extras.ts";
import { attributeRequest, attributeUser } from "./attribution.ts";
import type { RequestState } from "./state.ts";

/** Reads and checks the body. @throws {GatewayError} as `RouteContext.readJson`, and `invalid` */
export async function readRequest({ codec, request, context, meter }: RequestState): Promise<Screened> {
  attributeRequest(meter, request.headers);
  codec.checkHeaders?.((name) => request.headers.get(name));
  const body = await context.readJson();
  attributeUser(meter, body.value);
  checkBody(codec.schema, body.value);
  return screenExtras(body, codec, requireCaller(context.caller));
}

/** Decodes the prompt, in slices where it is long. @throws {GatewayError} `invalid` */
export async function decodePrompt(screened: Screened, { codec }: RequestState): Promise<Prompt> {
  const { body, permits } = screened;
  const isLong = documentSize(body) > LONG_TEXT_CHARS;
  const texts = isLong ? await codec.writeTexts?.(body.value) : undefined;
  const prompt = withExtras(codec.readPrompt(body.value, texts, permits), screened);
  if (isLong) await writeLongParts(prompt);
  return prompt;
}
