/** Reads the parts of a content as blocks. */
import { callSignatureId, GOOGLE_ISSUER, signatureBlock } from "../canonical/signature.ts";
import { decodeMedia, normalizeMediaType, readBase64, readMediaUrl } from "../canonical/media.ts";
import type { ContentBlock, ContentBlockOf, Media } from "../canonical/types.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type JsonObject, writeJson } from "../../json/mod.ts";
import type { ClientPermissions, PrewrittenJson } from "../codec.ts";
import { nonEmptyStringOf, objectOf, objectsOf, present, stringOf } from "../members.ts";
import type { CallMatcher } from "./match_calls.ts";
import {
  PRECEDING_TEXT_SIGNATURE_ID,
  readThoughtSignature,
  type ReasoningBlock,
  TEXT_SIGNATURE_ID,
} from "./signatures.ts";

/** The state of reading one request. */
export interface GeminiReadContext {
  calls: CallMatcher;
  /** The JSON text of arguments and results, written in advance; undefined: it is written where it is read. */
  texts: PrewrittenJson | undefined;
  /** The client's permissions; undefined: nothing is refused for lack of one. */
  permissions: ClientPermissions | undefined;
  images: number;
}

const TEXT_PART_MEMBERS = new Set(["text", "thought", "thoughtSignature"]);
const MEDIA_PART_MEMBERS = new Set(["inlineData", "fileData", "thoughtSignature", "text"]);
const CALL_MEMBERS = { functionCall: new Set(["id", "name", "args"]) };
const RESULT_MEMBERS = { functionResponse: new Set(["id", "name", "response", "parts"]) };

/** Members of parts that record what ran at the vendor. */
const VENDOR_PARTS = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];

/** The members with data, of which a part has one. https://ai.google.dev/api/caching#Part */
const DATA_MEMBERS = ["text", "inlineData", "fileData", "functionCall", "functionResponse", ...VENDOR_PARTS];

/** Parts read in one step. */
export const PARTS_PER_STEP = 256;

/** Keys under which a response may have its whole output. https://ai.google.dev/api/caching#FunctionResponse */
const OUTPUT_KEYS = ["output", "result"];

/** Reads the parts of a user or system content. @throws {GatewayError} `invalid`, for parts that cannot be read */
export function readUserParts(parts: readonly JsonObject[], path: string, context: GeminiReadContext): ContentBlock[] {
  return parts.flatMap((part, index): ContentBlock[] => {
    const partPath = `${path}[${index}]`;
    checkData(part, partPath);
    const result = objectOf(part.functionResponse);
    if (result !== undefined) return [readResult(part, result, `${partPath}.functionResponse`, context)];
    return readOtherPart(part, partPath, context);
  });
}

/**
 * Reads the parts of a model content, in steps. Signatures become reasoning before their part. An envelope replaces the
 * thoughts that it contains.
 * @throws {GatewayError} `invalid`, for parts that cannot be read
 */
export function* readModelParts(
  parts: readonly JsonObject[],
  path: string,
  context: GeminiReadContext,
): Generator<void, ContentBlock[]> {
  const blocks: ContentBlock[] = [];
  const seen = new Set<string>();
  /** Index of the first block that an envelope may replace. */
  let start = 0;

  function readSignature(value: string | undefined, id: string | undefined): void {
    const signature = value === undefined ? undefined : readThoughtSignature(value);
    if (signature === undefined) return;
    if (typeof signature === "string") {
      blocks.push(signatureBlock({ issuer: GOOGLE_ISSUER, value: signature, ...present({ id }) }));
      return;
    }
    const others = blocks.splice(start).filter((block) => block.type !== "reasoning" || block.signature !== undefined);
    start += others.length;
    blocks.push(...others, ...signature.filter((block) => !isSeen(block, seen)));
  }

  for (const [index, part] of parts.entries()) {
    const partPath = `${path}[${index}]`;
    if (index % PARTS_PER_STEP === PARTS_PER_STEP - 1) yield;
    const dataMember = checkData(part, partPath);
    const signature = nonEmptyStringOf(part.thoughtSignature);
    const call = objectOf(part.functionCall);
    if (call !== undefined) {
      const read = readCall(part, call, context);
      readSignature(signature, callSignatureId(read.id));
      blocks.push(read);
      start = blocks.length;
    } else if (part.thought === true && (dataMember === undefined || dataMember === "text")) {
      blocks.push(...readThought(part, signature));
    } else {
      const others = readOtherPart(part, partPath, context);
      readSignature(signature, others.length === 0 ? PRECEDING_TEXT_SIGNATURE_ID : TEXT_SIGNATURE_ID);
      blocks.push(...others);
    }
  }
  return blocks;
}

/**
 * Returns the name of the member with the part's data; an empty text counts as none. A part with two is refused: the
 * upstream could read another one than the gateway counts and checks.
 * @throws {GatewayError} `invalid`, for two members with data
 */
function checkData(part: JsonObject, param: string): string | undefined {
  let dataMember: string | undefined;
  for (const name of DATA_MEMBERS) {
    const value = part[name];
    if (value === undefined || value === null || value === "") continue;
    if (dataMember !== undefined) {
      throw new GatewayError("invalid", `Cannot use both ${dataMember} and ${name} in one part`, { param });
    }
    dataMember = name;
  }
  return dataMember;
}

/** True for signed reasoning that another part of the content contained, too. */
function isSeen({ signature }: ReasoningBlock, seen: Set<string>): boolean {
  if (signature === undefined) return false;
  const key = JSON.stringify([signature.issuer, signature.value]);
  if (seen.has(key)) return true;
  seen.add(key);
  return false;
}

function readThought(part: JsonObject, value: string | undefined): ContentBlock[] {
  const text = stringOf(part.text) ?? "";
  const signature = value === undefined ? undefined : readThoughtSignature(value);
  if (Array.isArray(signature)) return signature;
  if (signature === undefined) return text === "" ? [] : [{ type: "reasoning", text }];
  return [{
    type: "reasoning",
    text,
    ...(text === "" && { hidden: true }),
    signature: { issuer: GOOGLE_ISSUER, value: signature },
  }];
}

function readCall(
  part: JsonObject,
  call: JsonObject,
  { calls, texts }: GeminiReadContext,
): ContentBlockOf<"tool_call"> {
  const name = stringOf(call.name) ?? "";
  const args = objectOf(call.args) ?? {};
  return {
    type: "tool_call",
    id: calls.begin(name, nonEmptyStringOf(call.id)),
    name,
    arguments: texts?.get(args) ?? writeJson(args),
    ...unknownIn("gemini", part, TEXT_PART_MEMBERS, { inner: CALL_MEMBERS }),
  };
}

function readResult(
  part: JsonObject,
  result: JsonObject,
  path: string,
  context: GeminiReadContext,
): ContentBlock {
  const name = stringOf(result.name) ?? "";
  const response = objectOf(result.response) ?? {};
  const media = objectsOf(result.parts).flatMap((inner, index) => {
    const partPath = `${path}.parts[${index}]`;
    checkData(inner, partPath);
    return readOtherPart(inner, partPath, context);
  });
  const { text, isError } = readResponse(response, context.texts);
  return {
    type: "tool_result",
    callId: context.calls.end(name, nonEmptyStringOf(result.id)),
    blocks: [...(text === "" ? [] : [{ type: "text" as const, text }]), ...media],
    ...(isError && { isError }),
    ...unknownIn("gemini", part, TEXT_PART_MEMBERS, { inner: RESULT_MEMBERS }),
  };
}

/** Returns a result as text: the value of its only member `output`, `result` or `error`, else the whole object. */
function readResponse(response: JsonObject, texts: PrewrittenJson | undefined): { text: string; isError: boolean } {
  const [name, ...others] = Object.keys(response);
  if (name === undefined) return { text: "", isError: false };
  const isError = others.length === 0 && name === "error";
  const value = others.length === 0 && (isError || OUTPUT_KEYS.includes(name)) ? response[name] : undefined;
  return { text: stringOf(value) ?? texts?.get(response) ?? writeJson(response), isError };
}

/** Reads text, media, and parts that only Google has. */
function readOtherPart(part: JsonObject, path: string, context: GeminiReadContext): ContentBlock[] {
  const inline = objectOf(part.inlineData);
  const file = objectOf(part.fileData);
  const holder = inline ?? file;
  if (holder !== undefined) {
    const media = inline === undefined ? readFile(holder, path) : readInline(inline, path);
    if ((media.mediaType ?? "image/").startsWith("image/")) context.images++;
    const name = nonEmptyStringOf(holder.displayName);
    return [{ type: "media", media, ...present({ name }), ...unknownIn("gemini", part, MEDIA_PART_MEMBERS) }];
  }
  const text = stringOf(part.text);
  if (text !== undefined) {
    if (text === "" && part.thoughtSignature !== undefined) return [];
    return [{ type: "text", text, ...unknownIn("gemini", part, TEXT_PART_MEMBERS) }];
  }
  const { thoughtSignature: _, ...value } = part;
  if (Object.values(value).every((member) => member === null || member === undefined)) return [];
  const isKnown = VENDOR_PARTS.some((name) => isObject(part[name]));
  if (!isKnown && isObject(part.functionResponse)) {
    throw new GatewayError("invalid", "Expected functionResponse in a content with role user", { param: path });
  }
  context.permissions?.checkItem(value, path);
  return [{ type: "vendor_specific", from: "gemini", value: part }];
}

function readInline({ mimeType, data }: JsonObject, path: string): Media {
  return {
    kind: "bytes",
    mediaType: plainType(stringOf(mimeType) ?? ""),
    base64: decodeMedia(() => readBase64(stringOf(data) ?? ""), `${path}.inlineData.data`),
  };
}

function readFile({ mimeType, fileUri }: JsonObject, path: string): Media {
  const media = decodeMedia(() => readMediaUrl(stringOf(fileUri) ?? ""), `${path}.fileData.fileUri`);
  const type = nonEmptyStringOf(mimeType);
  return media.kind === "url" ? present({ ...media, mediaType: type && plainType(type) }) as Media : media;
}

/** Returns a media type without parameters, which those of recordings have, such as `audio/L16;rate=24000`. */
function plainType(type: string): string {
  return normalizeMediaType(type.split(";", 1)[0]?.trim() ?? "");
}
