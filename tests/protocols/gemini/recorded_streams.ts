/**
 * Recorded streams for the tests of this protocol: pieces as the vendor sends them, one per line, with the expected
 * replies.
 */
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { ContentBlock, Reply, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { geminiUpstream } from "../../../lib/protocols/gemini/upstream.ts";

const FOLDER = new URL("../../fixtures/gemini/", import.meta.url);

/** The issuer of signatures in these tests. */
export const ORIGIN = { issuer: "google" };

/** The frames of a recorded stream. */
export function framesOf(name: string): Frame[] {
  return Deno.readTextFileSync(new URL(`${name}.jsonl`, FOLDER)).trimEnd().split("\n").map((data) => ({ data }));
}

/** Names of all recorded streams; streams that end in an error begin with `error_`. */
export const NAMES: readonly string[] = [...Deno.readDirSync(FOLDER)].map(({ name }) => name)
  .filter((name) => name.endsWith(".jsonl")).map((name) => name.replace(".jsonl", "")).sort();

/** Names of the streams that are whole answers. */
export const ANSWERS: readonly string[] = NAMES.filter((name) => !name.startsWith("error_"));

/** The events of a stream, each checked against the grammar. */
export function read(frames: readonly Frame[]): ReplyEvent[] {
  const reader = geminiUpstream.reader(ORIGIN);
  const grammar = checkGrammar();
  const events = [...frames.flatMap((frame) => reader.push(frame)), ...reader.end()];
  const checked = events.flatMap((event) => grammar.push(event));
  grammar.end();
  return checked;
}

/** The parts of an answer: `{parts}` of its only candidate. */
export function partsOf(body: JsonObject): JsonObject[] {
  const [candidate] = objects(body.candidates);
  return isObject(candidate?.content) ? objects(candidate.content.parts) : [];
}

/** The same answer in one piece: adjacent texts are one part, which has the signature of any of them. */
export function whole(frames: readonly Frame[]): JsonObject {
  const pieces = frames.map(({ data }) => parseJson(data)).filter(isObject);
  const parts: JsonObject[] = [];
  for (const part of pieces.flatMap(partsOf)) {
    const last = parts.at(-1);
    const isText = part.text !== undefined || Object.keys(part).join() === "thoughtSignature";
    const goesOn = isText && last?.text !== undefined && last.thought === part.thought &&
      !(last.thought === true && last.thoughtSignature !== undefined);
    if (goesOn) Object.assign(last, part, { text: `${last.text}${part.text ?? ""}` });
    else parts.push({ ...part });
  }
  const candidates = pieces.flatMap((piece) => objects(piece.candidates));
  const candidate = Object.assign({}, ...candidates, parts.length > 0 && { content: { role: "model", parts } });
  return Object.assign({}, ...pieces, candidates.length > 0 && { candidates: [candidate] });
}

/**
 * A streamed answer as it would be read from one piece: the signature follows the text if it arrived within one;
 * otherwise it precedes it.
 */
export function signedBefore(reply: Reply): Reply {
  const blocks: ContentBlock[] = [];
  for (const block of reply.blocks) {
    const last = blocks.at(-1);
    if (block.type === "reasoning" && block.signature?.id === "text:end" && last?.type === "text") {
      blocks.splice(-1, 1, { ...block, signature: { ...block.signature, id: "text" } }, last);
    } else blocks.push(block);
  }
  return { ...reply, blocks };
}

function objects(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
