/**
 * Official SDKs fail on some defects of a stream. No stream to a client may have one of them, whatever the upstream
 * sent. How each SDK reacts to each defect was measured with Anthropic's and OpenAI's clients for JavaScript and
 * Python.
 */
import { assert, assertEquals } from "@std/assert";
import type { Protocol, ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { type ErrorKind, GatewayError } from "../../lib/errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { CLIENTS, PROTOCOLS } from "../golden/crossings.ts";
import { readEvents, RECORDED } from "../golden/recorded.ts";
import { writeFrames } from "../golden/round_trips.ts";
import { accumulate as accumulateResponse } from "./responses/accumulate.ts";
import { randomAnswer } from "./translate/random_prompt.ts";

/** One stream to a client. */
interface Output {
  where: string;
  events: readonly ReplyEvent[];
  frames: Frame[];
  /** Data of the frames without `[DONE]`. */
  data: JsonObject[];
  failed: boolean;
}

function outputs(client: Protocol, request?: JsonObject): Output[] {
  const random = Array.from(
    { length: 150 },
    (_, seed) => ({ where: `seed ${seed}`, events: randomAnswer(seed, TOOLS) }),
  );
  const recorded = RECORDED.map((stream) => ({
    where: `${stream.protocol}: ${stream.name}`,
    events: readEvents(stream),
  }));
  return [...recorded, ...random].map(({ where, events }) => {
    const frames = writeFrames(events, client, request);
    const data = frames.filter(({ data }) => data !== "[DONE]").map(({ data }) => object(parseJson(data)));
    return { where, events, frames, data, failed: events.at(-1)?.type === "error" };
  });
}

const TOOLS = [{ name: "get_weather" }, { name: "patch", custom: true }];

const MESSAGES = outputs("messages");
const CHAT = outputs("chat");
const RESPONSES = outputs("responses");

function object(value: Json | undefined): JsonObject {
  assert(isObject(value), `an object, not ${JSON.stringify(value)}`);
  return value;
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

function types({ data }: Output): Json[] {
  return data.map(({ type }) => type ?? null);
}

Deno.test("messages: every event has an event line", () => {
  for (const { frames, data, where } of MESSAGES) {
    assertEquals(frames.map(({ event }) => event), data.map(({ type }) => type as string), where);
  }
});

Deno.test("messages: a stream starts and ends once, with nothing after its end", () => {
  for (const output of MESSAGES) {
    const all = types(output);
    assertEquals(all.filter((type) => type === "message_start").length <= 1, true, output.where);
    if (!output.failed) assertEquals(all[0], "message_start", output.where);
    const ends = all.filter((type) => type === "message_stop" || type === "error");
    assertEquals(ends, [output.failed ? "error" : "message_stop"], output.where);
    assertEquals(all.at(-1), ends[0], output.where);
    assert(!output.frames.some(({ data }) => data === "[DONE]"), output.where);
  }
});

Deno.test("messages: the start and the only message_delta have usage", () => {
  for (const { data, where, failed } of MESSAGES) {
    for (const event of data) {
      if (event.type === "message_start") checkUsage(object(event.message).usage, where);
      if (event.type === "message_delta") checkUsage(event.usage, where);
    }
    const deltas = data.filter(({ type }) => type === "message_delta");
    assertEquals(deltas.length, failed ? 0 : 1, where);
    if (!failed) assertEquals(data.at(-2), deltas[0], where);
  }
});

function checkUsage(usage: Json | undefined, where: string): void {
  const { input_tokens: input, output_tokens: output } = object(usage);
  assert(typeof input === "number" && typeof output === "number", where);
}

Deno.test("messages: blocks count from 0 without gaps, one open at a time", () => {
  for (const { data, where } of MESSAGES) {
    let open: number | undefined;
    let next = 0;
    for (const { type, index } of data) {
      if (type === "content_block_start") {
        assertEquals([open, index], [undefined, next], where);
        open = next++;
      }
      if (type === "content_block_delta") assertEquals(index, open, where);
      if (type === "content_block_stop") {
        assertEquals(index, open, where);
        open = undefined;
      }
    }
  }
});

Deno.test("messages: the pieces of a tool's input form one object", () => {
  for (const { data, where, events, failed } of MESSAGES) {
    if (failed || events.some((event) => event.type === "finish" && event.reason === "length")) continue;
    for (const start of data.filter(({ type }) => type === "content_block_start")) {
      if (object(start.content_block).type !== "tool_use") continue;
      assertEquals(object(start.content_block).input, {}, where);
      const input = data.filter(({ type, index }) => type === "content_block_delta" && index === start.index)
        .map(({ delta }) => object(delta).partial_json).join("");
      object(parseJson(input));
    }
  }
});

Deno.test("messages: a thinking block has one signature, last; empty if unsigned", () => {
  for (const { data, where, failed } of MESSAGES) {
    const signed = data.filter(({ delta }) => isObject(delta) && delta.type === "signature_delta");
    assertEquals(new Set(signed.map(({ index }) => index)).size, signed.length, where);
    if (failed) continue;
    for (const { type, index, content_block: block } of data) {
      if (type !== "content_block_start" || object(block).type !== "thinking") continue;
      const deltas = data.filter((event) => event.type === "content_block_delta" && event.index === index);
      assertEquals(object(deltas.at(-1)?.delta).type, "signature_delta", where);
    }
  }
});

Deno.test("messages: no block is empty", () => {
  for (const { data, where, failed } of MESSAGES) {
    if (failed) continue;
    for (const { type, index, content_block: block } of data) {
      if (type !== "content_block_start" || !["text", "thinking"].includes(String(object(block).type))) continue;
      const deltas = data.filter((event) => event.type === "content_block_delta" && event.index === index);
      assert(deltas.length > 0, `${where}: block ${index}`);
    }
  }
});

Deno.test("messages: there is no unknown event, delta or block", () => {
  const events = ["message_start", "ping", "content_block_start", "content_block_delta", "content_block_stop"]
    .concat(["message_delta", "message_stop", "error"]);
  const deltas = ["text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta"];
  const blocks = ["text", "thinking", "redacted_thinking", "tool_use"];
  for (const { data, where, events: from } of MESSAGES) {
    const own = from.flatMap((event) =>
      event.type === "open" && event.block.type === "vendor_specific" && event.block.from === "messages"
        ? [event.block.value.type]
        : []
    );
    for (const { type, delta, content_block: block } of data) {
      assert(events.includes(String(type)), `${where}: ${type}`);
      if (type === "content_block_delta") assert(deltas.includes(String(object(delta).type)), where);
      if (type === "content_block_start") assert([...blocks, ...own].includes(String(object(block).type)), where);
    }
  }
});

function choiceOf({ choices }: JsonObject): JsonObject | undefined {
  const [choice] = list(choices);
  return isObject(choice) ? choice : undefined;
}

function deltasOf({ data }: Output): JsonObject[] {
  return data.flatMap((chunk) => {
    const delta = choiceOf(chunk)?.delta;
    return isObject(delta) ? [delta] : [];
  });
}

Deno.test("chat: chunks have no event lines, and a constant id, date and model", () => {
  for (const { frames, data, where } of CHAT) {
    assert(frames.every(({ event }) => event === undefined), where);
    const heads = data.filter(({ error }) => error === undefined).map(({ id, created, model }) => [id, created, model]);
    for (const head of heads) assertEquals(head, heads[0], where);
  }
});

Deno.test("chat: the role is sent once, first", () => {
  for (const output of CHAT) {
    const deltas = deltasOf(output);
    assertEquals(deltas.map(({ role }) => role ?? null), deltas.map((_, index) => index === 0 ? "assistant" : null));
  }
});

Deno.test("chat: there is one finish reason, followed only by usage and the end mark", () => {
  for (const { data, frames, where, failed } of CHAT) {
    const reasons = data.map((chunk) => choiceOf(chunk)?.finish_reason ?? null);
    const at = reasons.findIndex((reason) => reason !== null);
    assertEquals(reasons.filter((reason) => reason !== null).length, failed ? 0 : 1, where);
    assertEquals(frames.at(-1)?.data === "[DONE]", !failed, where);
    if (failed) continue;
    assert(["stop", "length", "tool_calls", "content_filter", "function_call"].includes(String(reasons[at])), where);
    assertEquals(data.slice(at + 1).map(({ choices }) => choices), [[]], where);
  }
});

Deno.test("chat: usage comes once in its own chunk, on request", () => {
  for (const { data, where, failed } of CHAT) {
    const chunks = data.filter(({ error }) => error === undefined);
    const last = failed ? undefined : chunks.at(-1);
    for (const chunk of chunks) assertEquals(isObject(chunk.usage), chunk === last, where);
  }
  const request = { model: "acme/thinker", messages: [{ role: "user", content: "Hi" }], stream: true };
  for (const { data, where } of outputs("chat", request)) {
    assert(
      data.every((chunk) => chunk.usage === undefined && list(chunk.choices).length !== 0 || "error" in chunk),
      where,
    );
  }
});

Deno.test("chat: a call's first piece has index, id, type and name; later pieces only the index", () => {
  for (const output of CHAT) {
    const known = new Set<Json>();
    for (const piece of deltasOf(output).flatMap(({ tool_calls: calls }) => list(calls)).map((call) => object(call))) {
      const { index, id, type } = piece;
      const inner = object(piece.function ?? piece.custom);
      if (known.has(index ?? null)) {
        assertEquals(["id" in piece, "type" in piece, "name" in inner], [false, false, false], output.where);
      } else {
        assertEquals(index, known.size, output.where);
        assert(
          typeof id === "string" && id !== "" && typeof inner.name === "string" && inner.name !== "",
          output.where,
        );
        assertEquals(type, piece.function === undefined ? "custom" : "function", output.where);
        known.add(index ?? null);
      }
      for (const value of [id, type, inner.name]) assert(value !== null, output.where);
    }
  }
});

Deno.test("chat: reasoning_details come in one chunk, each entry with its own index", () => {
  for (const output of CHAT) checkOnce(output, "reasoning_details", true);
});

Deno.test("chat: annotations come in one chunk", () => {
  for (const output of CHAT) checkOnce(output, "annotations", false);
});

function checkOnce(output: Output, name: string, indexed: boolean): void {
  const lists = deltasOf(output).flatMap(({ [name]: value }) => value === undefined ? [] : [list(value)]);
  assert(lists.length <= 1, output.where);
  const indices = lists.flat().map((entry) => object(entry).index);
  if (indexed) assertEquals(indices, indices.map((_, index) => index), output.where);
}

Deno.test("chat: calls in one piece or several have no empty arguments", () => {
  for (const output of CHAT) {
    if (output.failed) continue;
    const texts = new Map<Json, string>();
    for (const call of deltasOf(output).flatMap(({ tool_calls: calls }) => list(calls)).map((call) => object(call))) {
      const { arguments: text } = object(call.function ?? { arguments: "-" });
      texts.set(call.index ?? null, (texts.get(call.index ?? null) ?? "") + (text ?? ""));
    }
    for (const text of texts.values()) assert(text.trim() !== "", output.where);
  }
});

Deno.test("chat: a failure is an error object, last and without an end mark", () => {
  for (const { data, frames, where, failed } of CHAT) {
    assertEquals(data.filter(({ error }) => error !== undefined).length, failed ? 1 : 0, where);
    if (!failed) continue;
    assertEquals(JSON.stringify(data.at(-1)), frames.at(-1)?.data, where);
    const { message, type } = object(data.at(-1)?.error);
    assert(typeof message === "string" && typeof type === "string", where);
  }
});

Deno.test("responses: every event is consistent with earlier ones, and the last response contains all output", () => {
  for (const { frames, where } of RESPONSES) {
    try {
      const { built, last } = accumulateResponse(frames);
      assert(Array.isArray(last.output));
      if (last.status !== "failed") assertEquals(built.output, last.output);
    } catch (error) {
      throw new Error(`${where}: ${error}`, { cause: error });
    }
  }
});

Deno.test("responses: events count from 0, are named like their types, and [DONE] comes last", () => {
  for (const { frames, data, where } of RESPONSES) {
    assertEquals(data.map(({ sequence_number: number }) => number), data.map((_, index) => index), where);
    assertEquals(frames.slice(0, -1).map(({ event }) => event), data.map(({ type }) => type as string), where);
    assertEquals(frames.at(-1), { data: "[DONE]" }, where);
  }
});

Deno.test("responses: the start has an empty output, the end the whole one", () => {
  for (const { data, where, failed } of RESPONSES) {
    assertEquals([data[0]?.type, object(data[0]?.response).output], ["response.created", []], where);
    const last = object(data.at(-1)?.response);
    assertEquals(
      data.filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(String(type))).length,
      1,
      where,
    );
    assertEquals(Array.isArray(last.output), true, where);
    assertEquals(last.status === "failed", failed, where);
    if (!failed) assert(isObject(last.usage), where);
  }
});

Deno.test("responses: items count from 0 in final order", () => {
  for (const { data, where } of RESPONSES) {
    const added = data.filter(({ type }) => type === "response.output_item.added").map(({ output_index: at }) => at);
    assertEquals(added, added.map((_, index) => index), where);
  }
});

Deno.test("responses: an error is nested, and a failed response follows it", () => {
  for (const output of RESPONSES) {
    const all = types(output);
    const at = all.indexOf("error");
    assertEquals(at >= 0, output.failed, output.where);
    if (at < 0) continue;
    assertEquals(all.slice(at), ["error", "response.failed"], output.where);
    assert(typeof object(output.data[at]?.error).message === "string", output.where);
    const { code, message } = object(object(output.data.at(-1)?.response).error);
    assert(typeof code === "string" && typeof message === "string", output.where);
  }
});

Deno.test("keep-alives start no event that clients fail on", () => {
  assertEquals(CLIENTS.chat.keepAlive, ": keep-alive\n");
  assertEquals(CLIENTS.responses.keepAlive, ": keep-alive\n");
  assertEquals(CLIENTS.messages.keepAlive.split("\n").slice(0, 1), ["event: ping"]);
  // Google's SDKs for Python and Go fail at comments, and at an event that does not begin with its data.
  assertEquals(CLIENTS.gemini.keepAlive, "\n\n");
  for (const client of PROTOCOLS) assert(!/^id:|^data: :/m.test(CLIENTS[client].keepAlive), client);
});

Deno.test("error bodies can be read by each client's SDK", () => {
  const kinds: ErrorKind[] = ["invalid", "unauthenticated", "forbidden", "not_found", "too_large", "limited"];
  kinds.push("exhausted", "internal", "upstream", "overloaded", "timeout");
  for (const kind of kinds) {
    const error = new GatewayError(kind, "It failed", { param: "model" });
    for (const client of PROTOCOLS) {
      const { status, body } = CLIENTS[client].writeError(error, "r1");
      const { message, type, status: name, code } = object(body.error);
      assert(typeof message === "string", `${client}: ${kind}`);
      assert(typeof (client === "gemini" ? name : type) === "string", `${client}: ${kind}`);
      if (client === "gemini") assertEquals(code, status);
      // Only Anthropic's clients know 529; for them it is more specific than 503.
      assertEquals(status === 529, client === "messages" && kind === "overloaded", `${client}: ${kind}`);
      assertEquals(body.type, client === "messages" ? "error" : undefined);
      if (client === "chat" || client === "responses") {
        assert("param" in object(body.error) && "code" in object(body.error));
      }
    }
  }
});
