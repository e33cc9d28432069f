import { assertEquals, assertThrows } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import type {
  ContentBlock,
  ContentBlockOf,
  Message,
  Prompt,
  Protocol,
  UnknownMembers,
} from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { fitCacheMarks } from "../../../lib/protocols/translate/cache_marks.ts";
import { flattenContent, moveMediaOutOfResults } from "../../../lib/protocols/translate/fit_content.ts";
import { dropUnknownMembers } from "../../../lib/protocols/translate/drop_unknown_members.ts";
import { assistant, promptOf, result, text, user } from "../canonical/messages.ts";
import { type Kind, picture, targetOf } from "./targets.ts";

function foreign(from: Protocol, value: JsonObject): ContentBlockOf<"vendor_specific"> {
  return { type: "vendor_specific", from, value };
}

Deno.test("foreign blocks that the model must read become text and media", () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
  const cases: [string, JsonObject, ContentBlock[]][] = [
    ["search result", {
      type: "search_result",
      title: "T",
      source: "https://s",
      content: [{ type: "text", text: "one" }, { type: "text", text: "two" }],
      cache_control: { type: "ephemeral", ttl: "1h" },
    }, [{ type: "text", text: "Title: T\nSource: https://s\n\none\ntwo", cache: { ttl: "1h" } }]],
    ["document of blocks", {
      type: "document",
      title: "Doc",
      context: "why",
      source: { type: "content", content: [{ type: "text", text: "one" }, image] },
    }, [text("Document: Doc\nContext: why"), text("one"), picture]],
    ["loaded tool", { type: "tool_reference", tool_name: "x" }, [text("[Loaded tool: x]")]],
    ["summary", { type: "compaction", content: "before" }, [text("before\n\n")]],
  ];
  for (const [claim, value, blocks] of cases) {
    const target = targetOf("chat");
    const requested = promptOf([user(foreign("messages", value))], { protocol: "messages" });
    assertEquals(runToEnd(flattenContent(requested, target)).messages, [user(...blocks)], claim);
    assertEquals(target.dropped.names, [], claim);
    assertEquals(runToEnd(flattenContent(requested, targetOf("messages"))), requested);
  }
});

Deno.test("audio of OpenAI's protocols becomes media for others, but an address in its place is refused", () => {
  for (const [format, mediaType] of [["wav", "audio/wav"], ["mp3", "audio/mpeg"]] as const) {
    const sound = { type: "input_audio", input_audio: { data: "UklGRg==", format } };
    const media: ContentBlock = { type: "media", media: { kind: "bytes", base64: "UklGRg==", mediaType } };
    for (const [from, to] of [["chat", "gemini"], ["responses", "gemini"], ["responses", "chat"]] as const) {
      const requested = promptOf([user(foreign(from, sound))], { protocol: from });
      assertEquals(runToEnd(flattenContent(requested, targetOf(to))).messages, [user(media)], `${from} to ${to}`);
      assertEquals(runToEnd(flattenContent(requested, targetOf(from))), requested);
    }
  }
  const address = { type: "input_audio", input_audio: { data: "https://a.test/b.wav", format: "wav" } };
  const requested = promptOf([user(foreign("chat", address))], { protocol: "chat" });
  assertThrows(() => runToEnd(flattenContent(requested, targetOf("gemini"))), GatewayError, "input_audio");
});

Deno.test("records of tools at another vendor are dropped and named", () => {
  const cases: [Protocol, string, string][] = [
    ["messages", "server_tool_use", "server_tool_use"],
    ["messages", "web_search_tool_result", "web_search_tool_result"],
    ["responses", "web_search_call", "web_search_call"],
    ["chat", "reasoning.new", "reasoning_details"],
    ["chat", "reference", "reference"],
  ];
  for (const [protocol, type, name] of cases) {
    const target = targetOf("gemini");
    const requested = promptOf([user("a"), assistant("b", foreign(protocol, { type }))], { protocol });
    assertEquals(runToEnd(flattenContent(requested, target)).messages, [user("a"), assistant("b")]);
    assertEquals(target.dropped.names, [name]);
  }
});

Deno.test("members of another protocol are translated, or else named", () => {
  const cases: [Protocol, JsonObject, Kind, JsonObject | undefined, string[]][] = [
    ["chat", { metadata: { a: "b" }, verbosity: "low", store: true, logit: null }, "responses", {
      metadata: { a: "b" },
      text: { verbosity: "low" },
    }, ["store"]],
    ["responses", { text: { verbosity: "low" }, include: ["x"], store: false, prompt_cache_key: "k" }, "chat", {
      verbosity: "low",
      prompt_cache_key: "k",
    }, ["include"]],
    ["responses", { text: { verbosity: "low", other: 1 } }, "chat", undefined, ["text"]],
    ["chat", { service_tier: "default", prediction: { type: "content" } }, "messages", {
      service_tier: "standard_only",
    }, ["prediction"]],
    ["chat", { service_tier: "flex" }, "messages", undefined, ["service_tier"]],
    ["messages", { service_tier: "standard_only", context_management: { edits: [1] } }, "chat", {
      service_tier: "default",
    }, ["context_management"]],
    ["messages", { service_tier: "auto" }, "gemini", undefined, ["service_tier"]],
    ["messages", { service_tier: "auto", thread: {} }, "messages", { service_tier: "auto", thread: {} }, []],
    ["messages", { mcp_servers: [], speed: "fast" }, "responses", undefined, ["speed"]],
    [
      "chat",
      { modalities: ["text"], store: false, stream_options: { include_obfuscation: false } },
      "messages",
      undefined,
      [],
    ],
    ["chat", { min_p: 0, top_a: 0, repetition_penalty: 1 }, "responses", undefined, []],
    ["chat", { web_search_options: {} }, "responses", undefined, ["web_search_options"]],
    ["chat", { web_search_options: null }, "responses", undefined, []],
    ["responses", { text: { verbosity: null }, store: true }, "messages", undefined, []],
    ["gemini", { generationConfig: { responseModalities: ["TEXT"] } }, "chat", undefined, []],
  ];
  for (const [protocol, members, kind, carried, names] of cases) {
    const target = targetOf(kind);
    const { unknownMembers } = runToEnd(dropUnknownMembers(
      promptOf([], { protocol, unknownMembers: { from: protocol, members } }),
      target,
    ));
    assertEquals(unknownMembers?.members, carried);
    assertEquals(target.dropped.names, names);
  }
});

Deno.test("the detail of an image is carried between the protocols of OpenAI, and its default is no loss", () => {
  const inChat = { image_url: { detail: "low" } };
  const inResponses = { detail: "low" };
  for (
    const [from, to, members, expected] of [
      ["chat", "responses", { image_url: { detail: "low", size: 1 } }, inResponses],
      ["responses", "chat", { detail: "low", size: 1 }, inChat],
      ["chat", "messages", inChat, undefined],
      ["responses", "gemini", inResponses, undefined],
      ["chat", "messages", { image_url: { detail: "auto" } }, undefined],
    ] as const
  ) {
    const original = promptOf([user({ ...picture, unknownMembers: { from, members } })], { protocol: from });
    const target = targetOf(to);
    const [message] = runToEnd(dropUnknownMembers(original, target)).messages;
    const unknownMembers = expected && { from: to, members: expected };
    assertEquals(message?.blocks, [{ ...picture, ...(unknownMembers && { unknownMembers }) }]);
    const names = expected !== undefined ? ["size"] : JSON.stringify(members).includes("auto") ? [] : ["detail"];
    assertEquals(target.dropped.names, names, `${from} to ${to}`);
  }
});

Deno.test("dropped members of messages, blocks, tools and reasoning are reported once each", () => {
  const unknownMembers = (members: JsonObject): { unknownMembers: UnknownMembers } => ({
    unknownMembers: { from: "responses", members },
  });
  const original: Prompt = promptOf(
    [
      {
        ...user({ ...picture, ...unknownMembers({ detail: "low" }) }, {
          ...picture,
          ...unknownMembers({ detail: "low" }),
        }),
        ...unknownMembers({ id: "m" }),
      },
      assistant(
        { ...text("a"), ...unknownMembers({ item: { id: "x", status: "completed", phase: "final" }, logprobs: [1] }) },
        { type: "text", text: "b", citations: [{ from: "responses", value: {} }] },
      ),
    ],
    {
      protocol: "responses",
      tools: [{
        type: "function",
        name: "f",
        ...unknownMembers({ defer_loading: true, additional_tools: { index: 1 } }),
      }],
      reasoning: { effort: "low", ...unknownMembers({ summary: "detailed" }) },
    },
  );
  const target = targetOf("messages");
  const local = runToEnd(dropUnknownMembers(original, target));
  assertEquals(local.messages, [user(picture, picture), assistant("a", "b")]);
  assertEquals(local.tools, [{ type: "function", name: "f" }]);
  assertEquals(local.reasoning, { effort: "low" });
  assertEquals(
    new Set(target.dropped.names),
    new Set(["detail", "phase", "annotations", "defer_loading", "reasoning.summary"]),
  );
  const own = targetOf("responses");
  assertEquals(runToEnd(dropUnknownMembers(original, own)), original);
  assertEquals(own.dropped.names, []);
});

Deno.test("media move from results to after the last one of the message", () => {
  const named: ContentBlock = { type: "media", media: { kind: "url", url: "https://x/a.pdf" }, name: "a.pdf" };
  const one = "[Attachment 1 of the tool results]";
  const two = "[Attachment 2 of the tool results: a.pdf]";
  const cases: [Message[], Message[]][] = [
    [[user(result("1", "x", picture), result("2", named), "go")], [
      user(result("1", "x", one), result("2", two), one, picture, two, named, "go"),
    ]],
    [[user(result("1", picture)), user(result("2", named)), user("go"), assistant("a"), user(result("3", picture))], [
      user(result("1", one)),
      user(result("2", two), one, picture, two, named),
      user("go"),
      assistant("a"),
      user(result("3", one), one, picture),
    ]],
    [[user(picture, "a")], [user(picture, "a")]],
  ];
  for (const [messages, moved] of cases) assertEquals(moveMediaOutOfResults(promptOf(messages)).messages, moved);
});

Deno.test("four cache marks stay in the vendor's order, and none where unsupported", () => {
  const mark = (words: string, ttl: "5m" | "1h" = "5m"): ContentBlock => ({
    type: "text",
    text: words,
    cache: { ttl },
  });
  const cases: [string, Prompt, string[], boolean][] = [
    ["four", promptOf([user(mark("a"), mark("b"), mark("c"), mark("d"))]), ["5m", "5m", "5m", "5m"], false],
    [
      "the last four, tools and system first",
      promptOf(
        [user(mark("a"), result("1", mark("b"))), { role: "system", blocks: [mark("s")] }, assistant(mark("c"))],
        {
          tools: [{ type: "function", name: "f", cache: { ttl: "1h" } }, {
            type: "function",
            name: "g",
            cache: { ttl: "1h" },
          }],
        },
      ),
      ["1h", "5m", "5m", "5m", "5m"].slice(1),
      true,
    ],
    ["an hour after five minutes", promptOf([user(mark("a"), mark("b", "1h"))]), ["5m", "5m"], true],
    ["an hour before five minutes", promptOf([user(mark("a", "1h"), mark("b"))]), ["1h", "5m"], false],
    ["on reasoning", promptOf([assistant({ type: "reasoning", text: "x", cache: { ttl: "5m" } })]), [], true],
  ];
  for (const [claim, requested, ttls, named] of cases) {
    const target = targetOf("messages");
    const { tools, messages } = fitCacheMarks(requested, target);
    const all = messages.flatMap(({ blocks }) => blocks).flatMap((block) =>
      block.type === "tool_result" ? [...block.blocks, block] : [block]
    );
    assertEquals([...tools, ...all].flatMap(({ cache }) => cache?.ttl ?? []), ttls, claim);
    assertEquals(target.dropped.names, named ? ["cache_control"] : [], claim);
  }
  const target = targetOf("responses");
  assertEquals(fitCacheMarks(promptOf([user(mark("a"))]), target).messages, [user("a")]);
  assertEquals(target.dropped.names, ["cache_control"]);
  const carrying = targetOf("chat", { dialect: { cacheMarks: true } });
  const requested = promptOf([user(mark("a"))], { protocol: "messages" });
  assertEquals(fitCacheMarks(requested, carrying), requested);
});

Deno.test("require_parameters rejects every loss", () => {
  const dropped = new UnsupportedParameters();
  const strict = promptOf([], { provider: { require_parameters: true } });
  dropped.refuseIfRequired(strict);
  dropped.add("top_k");
  dropped.add("seed");
  dropped.refuseIfRequired(promptOf([]));
  const error = assertThrows(() => dropped.refuseIfRequired(strict), GatewayError, "top_k, seed");
  assertEquals([error.kind, error.param], ["invalid", "top_k"]);
});
