/** Laws for every parameter of a request. */
import { assert, assertEquals } from "@std/assert";
import { runToEnd } from "../../lib/scheduler.ts";
import { z } from "zod";
import { UnsupportedParameters } from "../../lib/protocols/canonical/unsupported_parameters.ts";
import type { ContentBlock, Prompt, Protocol } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import { checkBody } from "../../lib/protocols/fields.ts";
import type { WriteTarget } from "../../lib/protocols/upstream_codec.ts";
import { adapt } from "./translate/targets.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { CLIENTS, PROTOCOLS, rowOf, sideOf, UPSTREAMS } from "../golden/crossings.ts";
import { crossRequest } from "../golden/requests.ts";
import { randomPrompt } from "./translate/random_prompt.ts";
import { rounds } from "../support/skip.ts";

const BASE: Readonly<Record<Protocol, JsonObject>> = {
  chat: { model: "acme/thinker", messages: [{ role: "user", content: "Hi" }] },
  responses: { model: "acme/thinker", input: "Hi" },
  messages: { model: "acme/thinker", max_tokens: 1000, messages: [{ role: "user", content: "Hi" }] },
  gemini: { model: "acme/thinker", contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

/** Members that the gateway itself acts on. */
const OURS: ReadonlySet<string> = new Set([
  "provider",
  "models",
  "fallbacks",
  "include_reasoning",
  "usage",
  "truncation",
  "stream",
]);

/** Returns, for each member of a body, example members that have an effect. */
function membersOf(protocol: Protocol): Record<string, JsonObject> {
  const value = parseJson(Deno.readTextFileSync(new URL(`../fixtures/${protocol}/members.json`, import.meta.url)));
  assert(isObject(value));
  return Object.fromEntries(Object.entries(value).map(([name, set]) => [name, isObject(set) ? set : {}]));
}

/** Returns the outcome of a request as text: body, dropped names and gateway-side stops, or the refusal. */
function outcome(from: Protocol, to: string, body: JsonObject): string {
  try {
    const { body: written, dropped, restore } = crossRequest(from, to, body);
    return JSON.stringify([written, dropped, stopsAtEnd(restore)]);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return JSON.stringify([error.status, error.message, error.param]);
  }
}

/** True if the gateway itself ends an answer at END. */
function stopsAtEnd(restore: ReturnType<typeof crossRequest>["restore"]): boolean {
  const transform = restore();
  transform({ type: "start" });
  transform({ type: "open", index: 0, block: { type: "text" } });
  return transform({ type: "delta", index: 0, text: "at the END of it" }).some(({ type }) => type === "finish");
}

Deno.test("the recorded members cover the whole schema", () => {
  for (const protocol of PROTOCOLS) {
    const { schema } = CLIENTS[protocol];
    assert(schema instanceof z.ZodObject);
    const known = Object.keys(schema.shape).filter((name) =>
      !["model", "messages", "input", "contents"].includes(name)
    );
    const recorded = Object.keys(membersOf(protocol));
    assertEquals(known.filter((name) => !recorded.includes(name)), [], protocol);
  }
});

Deno.test("every parameter is passed on, named or refused", () => {
  for (const from of PROTOCOLS) {
    for (const [name, set] of Object.entries(membersOf(from))) {
      if (OURS.has(name) || `${from} ${name}` === "responses store") continue;
      const { [name]: _, ...companions } = set;
      const without = name.startsWith("a member") ? BASE[from] : { ...BASE[from], ...companions };
      for (const to of UPSTREAMS) {
        const content = outcome(from, to, { ...without, ...set });
        assert(content !== outcome(from, to, without), `${from} to ${to}: ${name} is lost in silence`);
      }
    }
  }
});

Deno.test("require_parameters prevents every loss", () => {
  for (const from of PROTOCOLS) {
    for (const [name, set] of Object.entries(membersOf(from))) {
      for (const to of UPSTREAMS) {
        const provider = { require_parameters: true };
        try {
          const { dropped } = crossRequest(from, to, { ...BASE[from], ...set, provider });
          assertEquals(dropped, [], `${from} to ${to}: ${name}`);
        } catch (error) {
          assert(error instanceof GatewayError && error.status === 400, `${from} to ${to}: ${name}: ${error}`);
        }
      }
    }
  }
});

/** Returns the content of a prompt in an order that every protocol has. */
function summarizePrompt(prompt: Prompt, protocol: Protocol): Json {
  const blocks = prompt.messages.flatMap(({ role, blocks }) => blocks.map((block) => ({ role, block })));
  const merges = protocol === "messages" || protocol === "gemini";
  const texts = (roles: string, types = ["text", "refusal"]) =>
    blocks.flatMap(({ role, block }) => roles.includes(role) && types.includes(block.type) ? textOf(block) : [])
      .join("").replaceAll(/\s|<\/?system>/g, "");
  return {
    // Gemini has later system messages as marked text of the user.
    system: protocol === "gemini" ? "" : texts("system"),
    user: texts(protocol === "gemini" ? "system, user" : "user"),
    // Chat keeps refusals beside the text, messages and Gemini within it.
    assistant: merges ? texts("assistant") : texts("assistant", ["text"]),
    refusals: merges ? "" : texts("assistant", ["refusal"]),
    calls: blocks.flatMap(({ block }) =>
      block.type === "tool_call" ? [[block.id, block.name, block.namespace ?? null, spelled(block.arguments)]] : []
    ),
    results: blocks.flatMap(({ block }) =>
      block.type === "tool_result"
        ? [[block.callId, block.blocks.flatMap(textOf).join("").replaceAll(/\[tool error\]|\s/g, "")]]
        : []
    ),
    media: blocks.flatMap(({ block }) => block.type === "tool_result" ? block.blocks : [block])
      .filter(({ type }) => type === "media").length,
    signatures: protocol === "chat"
      ? []
      : blocks.flatMap(({ block }) =>
        block.type === "reasoning" && block.signature !== undefined ? [block.signature.value] : []
      ),
    tools: prompt.tools.filter(({ type }) => type !== "hosted").map((tool) => tool.type === "hosted" ? "" : tool.name),
  };
}

function textOf(block: ContentBlock): string[] {
  return block.type === "text" || block.type === "refusal" ? [block.text] : [];
}

/** Normalizes arguments, which some protocols have as objects only. */
function spelled(text: string): string {
  try {
    const value = parseJson(text.trim() === "" ? "{}" : text);
    return JSON.stringify(isObject(value) && Object.keys(value).join() === "_raw" ? value._raw : value);
  } catch {
    return JSON.stringify(text);
  }
}

Deno.test("random prompts survive writing and reading in every protocol", () => {
  for (const protocol of PROTOCOLS) {
    const codec = CLIENTS[protocol];
    const { dialect } = UPSTREAM_CODECS[protocol];
    let read = 0;
    for (let seed = 0; seed < rounds(400); seed++) {
      const target: WriteTarget = {
        model: "acme/thinker",
        // A model that accepts system messages between others.
        row: rowOf("acme/continues"),
        issuer: sideOf(protocol).issuer,
        dialect,
        dropped: new UnsupportedParameters(),
      };
      const adapted = orRefused(() => adapt(possible(randomPrompt(seed)), { ...target, protocol }).prompt);
      // No upstream accepts an empty conversation.
      if (adapted === undefined || adapted.messages.every(({ role }) => role === "system")) continue;
      const body = orRefused(() => runToEnd(UPSTREAM_CODECS[protocol].writePrompt(adapted, target)));
      if (body === undefined) continue;
      const wire = parseJson(JSON.stringify(body));
      assert(isObject(wire));
      const request = { ...wire, model: wire.model ?? "acme/thinker" };
      checkBody(codec.schema, request);
      const back = codec.readPrompt(request);
      assertEquals(summarizePrompt(back, protocol), summarizePrompt(adapted, protocol), `${protocol}: seed ${seed}`);
      assertEquals(
        JSON.stringify(runToEnd(UPSTREAM_CODECS[protocol].writePrompt(adapted, target))),
        JSON.stringify(body),
      );
      read++;
    }
    assert(read > rounds(250), `${read} prompts were read`);
  }
});

/** No client's schema accepts a namespace with a space. */
function possible(prompt: Prompt): Prompt {
  return JSON.parse(JSON.stringify(prompt).replaceAll("mcp server", "mcp_server"));
}

function orRefused<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof GatewayError && error.kind === "invalid") return undefined;
    throw error;
  }
}
