/**
 * An upstream whose answers are as long as limits allow, in its own process. The first part of the path selects the
 * answer, the rest the protocol. Its first line of output is its port.
 */
import { streamParts, wholeAnswer } from "./suite/answers.ts";

const MB = 1_000_000;
const PROSE = "The folder is made after the file is opened, so the first call fails. ";

/** Ways to answer: the first part of the path, and a provider's name in the configuration. */
export const LONG_ANSWERS = ["prose", "quotes", "han", "call", "names", "words", "events", "short"] as const;

/** A way to answer. */
export type LongAnswer = (typeof LONG_ANSWERS)[number];

/** A text whose JSON has 30 MB, with the characters of this kind of answer. */
function textOf(play: LongAnswer): string {
  if (play === "quotes") return '"'.repeat(15 * MB);
  if (play === "han") return "字".repeat(10 * MB);
  return play === "short" ? "yes" : PROSE.repeat(30 * MB / PROSE.length);
}

/** The JSON arguments of a tool call: 30 MB if this kind of answer is about arguments. */
function argumentsOf(play: LongAnswer): string | undefined {
  if (play === "call") return JSON.stringify({ text: '"'.repeat(7 * MB) });
  if (play !== "names") return undefined;
  const objects = Array.from(
    { length: 19 },
    (_, number) => Object.fromEntries(Array.from({ length: 9_990 }, (_, at) => [`k${number}_${at}`, 1])),
  );
  return JSON.stringify({ list: objects });
}

type Protocol = "chat" | "messages" | "gemini";

function wholeBody(protocol: Protocol, play: LongAnswer): string {
  const text = textOf(play);
  const json = argumentsOf(play);
  if (protocol === "gemini") {
    const part = json === undefined ? { text } : { functionCall: { name: "f", args: JSON.parse(json) } };
    const usageMetadata = { promptTokenCount: 200, candidatesTokenCount: 150, totalTokenCount: 350 };
    return JSON.stringify({ candidates: [{ content: { parts: [part] }, finishReason: "STOP" }], usageMetadata });
  }
  const plain = wholeAnswer(protocol, 0);
  const body = JSON.parse(plain.slice(plain.indexOf("\r\n\r\n") + 4));
  if (protocol === "messages") {
    const call = { type: "tool_use", id: "call_1", name: "f", input: "HERE" };
    body.content = [json === undefined ? { type: "text", text } : call];
    return JSON.stringify(body).replace('"HERE"', () => json ?? "");
  }
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: json } };
  const [choice] = body.choices;
  choice.message = json === undefined
    ? { role: "assistant", content: text }
    : { role: "assistant", content: null, tool_calls: [call] };
  return JSON.stringify(body);
}

/** The text in events of this many characters; `1m` events have the maximum length. */
function streamedBody(protocol: "chat" | "messages", play: LongAnswer): string {
  const { opening, event, closing } = streamParts(protocol);
  const [first, delta, last] = [opening, event, closing].map((part) => dataOf(part)) as [string, string, string];
  const text = play === "words" ? PROSE.repeat(15 * MB / PROSE.length) : textOf(play);
  const size = play === "words" ? 20 : play === "events" ? 100_000 : play === "quotes" ? 3_900_000 : 7_800_000;
  const events: string[] = [first];
  for (let from = 0; from < text.length; from += size) {
    events.push(delta.replace('" word"', () => JSON.stringify(text.slice(from, from + size))));
  }
  return events.join("") + last;
}

/** The events in chunks, without the head of their message. */
function dataOf(chunks: string): string {
  return chunks.slice(chunks.indexOf("\r\n\r\n") < 0 ? 0 : headEnd(chunks)).replace(/^[0-9a-f]+\r\n/gm, "")
    .replaceAll("\r\n", "");
}

function headEnd(text: string): number {
  return text.startsWith("HTTP/") ? text.indexOf("\r\n\r\n") + 4 : 0;
}

const bodies = new Map<string, Uint8Array<ArrayBuffer>>();

function answer(path: string, isStream: boolean): Response {
  const play = LONG_ANSWERS.find((name) => path.startsWith(`/${name}/`));
  if (play === undefined) return new Response("{}", { status: 404 });
  const protocol = path.includes("generateContent") ? "gemini" : path.endsWith("/messages") ? "messages" : "chat";
  const name = `${protocol} ${play} ${isStream}`;
  let body = bodies.get(name);
  if (body === undefined) {
    const text = isStream && protocol !== "gemini" ? streamedBody(protocol, play) : wholeBody(protocol, play);
    bodies.set(name, body = new TextEncoder().encode(text));
  }
  return new Response(body, { headers: { "content-type": isStream ? "text/event-stream" : "application/json" } });
}

if (import.meta.main) {
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    // deno-lint-ignore no-console -- what the bench waits for
    onListen: ({ port }) => console.log(port),
  }, async (request) => {
    const text = await request.text();
    return answer(new URL(request.url).pathname, text.includes('"stream":true'));
  });
}
