/**
 * Reads a text request: reads and checks its body, removes features that its key may not use, and decodes its prompt.
 */
import type { Prompt, Protocol } from "../protocols/canonical/types.ts";
import { countPages, writeLongParts } from "../billing/prompt_parts.ts";
import type { Gateway } from "../gateway.ts";
import { documentSize } from "../json/mod.ts";
import type { Codec } from "../protocols/codec.ts";
import { acceptsHead, checkBody } from "../protocols/fields.ts";
import { LONG_REQUEST_BYTES, runSlicedNow, yieldToEventLoop } from "../scheduler.ts";
import { headOf } from "../server/parse_body.ts";
import { ScreenedBody } from "./screened_body.ts";
import { attributeRequest, attributeUser } from "./request_meter.ts";
import type { RequestState } from "./state.ts";

/** Reads and checks the body. @throws {GatewayError} as `RequestBody.readJson`, and `invalid` */
export async function readRequest({ codec, request, context, caller, meter }: RequestState): Promise<ScreenedBody> {
  attributeRequest(meter.entry, request.headers);
  codec.checkHeaders?.((name) => request.headers.get(name));
  // Only the bodies of relayed requests are scanned instead of parsed.
  const isWanted = (model: string) => isRelayed(model, codec.protocol, context.gateway);
  const { schema, plain } = codec;
  const body = await context.readJson(plain && { ...plain.contents, isWanted });
  attributeUser(meter.entry, headOf(body));
  const isValid = plain !== undefined && body.scanned !== undefined &&
    acceptsHead(schema, plain.contents.shapes.keys(), body.scanned.head);
  if (!isValid) checkBody(schema, body.value);
  return new ScreenedBody(body, codec, caller);
}

/** Returns whether all targets of a model speak the client's protocol. Their requests need no canonical prompt. */
function isRelayed(id: string, client: Protocol, { catalog, upstreams }: Gateway): boolean {
  for (const target of catalog.find(id)?.targets ?? []) {
    if (upstreams.get(target.upstream)?.protocolFor?.(client, target) !== client) return false;
  }
  return true;
}

/**
 * Decodes the prompt. Messages that a scan recognized are decoded when a step first reads them; any other body is decoded
 * here, in slices if it is long.
 * @throws {GatewayError} `invalid`
 */
export async function decodePrompt(screened: ScreenedBody, codec: Codec): Promise<Prompt> {
  const { body, permissions } = screened;
  const { scanned } = body;
  if (scanned !== undefined && codec.plain !== undefined) {
    return permissions.withGranted(codec.plain.readPrompt(scanned.head, scanned.sizes, () => body.value));
  }
  const isLong = documentSize(body) > LONG_REQUEST_BYTES;
  if (isLong) await yieldToEventLoop();
  const prompt = isLong && codec.readSteps !== undefined
    ? await runSlicedNow(codec.readSteps(body.value, screened))
    : codec.readPrompt(body.value, screened);
  if (isLong) {
    await yieldToEventLoop();
    await writeLongParts(prompt);
  } else await countPages(prompt);
  return permissions.withGranted(prompt);
}
