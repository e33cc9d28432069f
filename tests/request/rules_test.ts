import { assertEquals, assertMatch, assertStrictEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { UnsupportedParameters } from "../../lib/protocols/canonical/unsupported_parameters.ts";
import type { ContentBlock, Prompt, Protocol, Reasoning } from "../../lib/protocols/canonical/types.ts";
import { type Model, modelSchema } from "../../lib/catalog/model.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { anthropicError } from "../../lib/protocols/error_bodies.ts";
import { checkModelRules } from "../../lib/request/rules.ts";
import { assistant, call, promptOf, result, user } from "../protocols/canonical/messages.ts";
import { png, tool } from "../upstreams/embedded/prompts.ts";
import { plainModel } from "../support/plain_model.ts";

type Row = Partial<Pick<Model, "reasoning" | "supported_parameters">> & { input?: string[] };

function model({ input = ["text"], ...row }: Row = {}): Model {
  return modelSchema.parse(plainModel({
    id: "v/m",
    architecture: { input_modalities: input },
    top_provider: { max_completion_tokens: 100 },
    targets: [{ upstream: "u", model: "m" }],
    ...row,
  }));
}

const manual: Row = { reasoning: { modes: ["manual"], efforts: ["low", "medium", "high"] } };
const both: Row = { reasoning: { modes: ["manual", "adaptive"], efforts: ["low", "medium", "high"] } };
const adaptive: Row = { reasoning: { modes: ["adaptive"], efforts: ["low", "max"] } };
const none: Row = {};

/** "ok", or the rejected parameter; then the names of dropped parameters. */
function check(prompt: Prompt, row: Row): string[] {
  const dropped = new UnsupportedParameters();
  try {
    const checked = checkModelRules(prompt, model(row), dropped);
    if (row.reasoning === undefined) assertEquals("reasoning" in checked, false);
    else assertStrictEquals(checked, prompt);
    return ["ok", ...dropped.names];
  } catch (error) {
    if (!(error instanceof GatewayError) || error.kind !== "invalid") throw error;
    return [String(error.param), ...dropped.names];
  }
}

Deno.test("checkModelRules() checks reasoning options against the model", () => {
  const cases: [Protocol, Reasoning | undefined, Row, string[]][] = [
    // The table of modes: manual only, both, adaptive only, none
    ["messages", { mode: "manual", budgetTokens: 1024 }, manual, ["ok"]],
    ["messages", { mode: "manual", budgetTokens: 1024 }, both, ["ok"]],
    ["messages", { mode: "manual", budgetTokens: 1024 }, adaptive, ["thinking.type"]],
    ["messages", { mode: "manual", budgetTokens: 1024 }, none, ["ok", "thinking"]],
    ["messages", { mode: "adaptive" }, manual, ["thinking.type"]],
    ["messages", { mode: "adaptive" }, both, ["ok"]],
    ["messages", { mode: "adaptive" }, adaptive, ["ok"]],
    ["messages", { mode: "adaptive" }, none, ["ok", "thinking"]],
    ["chat", { mode: "manual", budgetTokens: 1024 }, adaptive, ["reasoning.max_tokens"]],
    ["chat", { mode: "manual", budgetTokens: 1024 }, manual, ["ok"]],
    ["chat", { mode: "manual", budgetTokens: 1024 }, none, ["ok", "reasoning"]],
    ["chat", { mode: "adaptive" }, manual, ["ok"]],
    // Efforts
    ["messages", { mode: "adaptive", effort: "low" }, adaptive, ["ok"]],
    ["messages", { mode: "adaptive", effort: "high" }, adaptive, ["output_config.effort"]],
    ["messages", { effort: "high" }, adaptive, ["output_config.effort"]],
    ["messages", { effort: "high" }, none, ["ok", "output_config.effort"]],
    ["messages", { mode: "adaptive", effort: "high" }, none, ["ok", "thinking", "output_config.effort"]],
    ["chat", { effort: "minimal" }, both, ["reasoning_effort"]],
    ["chat", { effort: "medium" }, both, ["ok"]],
    ["chat", { effort: "medium" }, none, ["ok", "reasoning_effort"]],
    ["responses", { effort: "xhigh" }, both, ["reasoning.effort"]],
    ["responses", { effort: "max" }, adaptive, ["ok"]],
    ["responses", { effort: "low", display: "summarized" }, none, ["ok", "reasoning"]],
    ["responses", { display: "summarized" }, none, ["ok", "reasoning"]],
    // No limit at all is always valid
    ["messages", { mode: "off" }, adaptive, ["ok"]],
    ["messages", { mode: "off" }, none, ["ok"]],
    ["messages", { mode: "off", effort: "high" }, adaptive, ["output_config.effort"]],
    ["chat", { effort: "none" }, adaptive, ["ok"]],
    ["chat", { effort: "none" }, none, ["ok"]],
    ["responses", { effort: "none", display: "summarized" }, none, ["ok"]],
    ["responses", { encrypted: true }, none, ["ok"]],
    ["responses", undefined, none, ["ok"]],
    ["responses", undefined, manual, ["ok"]],
  ];
  for (const [protocol, reasoning, row, expected] of cases) {
    const prompt = promptOf([user("hi")], { protocol, ...(reasoning !== undefined && { reasoning }) });
    assertEquals(check(prompt, row), expected, `${protocol} ${JSON.stringify(reasoning)} ${JSON.stringify(row)}`);
  }
});

Deno.test("checkModelRules() names the supported alternative", () => {
  const message = (reasoning: Reasoning, row: Row) =>
    assertThrows(
      () => checkModelRules(promptOf([], { protocol: "messages", reasoning }), model(row), new UnsupportedParameters()),
      GatewayError,
    ).message;
  assertStringIncludes(
    message({ mode: "manual" }, adaptive),
    'use output_config.effort with thinking.type "adaptive"',
  );
  assertStringIncludes(message({ mode: "adaptive" }, manual), 'use "enabled" with budget_tokens');
  assertEquals(
    message({ effort: "high" }, adaptive),
    'output_config.effort: v/m does not support the effort parameter "high"; it accepts "low", "max"',
  );
});

Deno.test("checkModelRules() words refusals on messages as Claude Code recognizes them, which then does without", () => {
  // From npm @anthropic-ai/claude-code 2.1.330.
  const otherMode = /thinking\.type[^a-z]{1,8}(enabled|adaptive)[^]*?not supported/i;
  const reasoned = (reasoning: Reasoning) => promptOf([], { protocol: "messages", reasoning });
  const image = promptOf([user(png(1, 1))], { protocol: "messages" });
  const pdf = { type: "media", media: { kind: "bytes", mediaType: "application/pdf", base64: "" }, name: "a" } as const;
  const cases: [Prompt, Row, RegExp, string?][] = [
    [reasoned({ mode: "adaptive" }), manual, otherMode, "adaptive"],
    [reasoned({ mode: "manual" }), adaptive, otherMode, "enabled"],
    [reasoned({ effort: "high" }), adaptive, /not support.*effort parameter/],
    [image, none, /could not process image/i],
    [promptOf([user(pdf)], { protocol: "messages" }), none, /does not support PDF input/],
  ];
  for (const [prompt, row, expected, group] of cases) {
    const error = assertThrows(() => checkModelRules(prompt, model(row), new UnsupportedParameters()), GatewayError);
    assertMatch(anthropicError(error).message, expected);
    assertEquals(expected.exec(anthropicError(error).message)?.[1], group);
  }
});

Deno.test("checkModelRules() rejects more output than the model supports", () => {
  const names: [Protocol, string][] = [
    ["messages", "max_tokens"],
    ["chat", "max_completion_tokens"],
    ["responses", "max_output_tokens"],
  ];
  for (const [protocol, param] of names) {
    assertEquals(check(promptOf([], { protocol, maxTokens: 100 }), none), ["ok"]);
    assertEquals(check(promptOf([], { protocol, maxTokens: 101 }), none), [param]);
  }
  assertThrows(
    () => checkModelRules(promptOf([], { protocol: "messages", maxTokens: 101 }), model(), new UnsupportedParameters()),
    GatewayError,
    "max_tokens: 101 > 100, which is the maximum allowed number of output tokens for v/m",
  );
});

Deno.test("checkModelRules() rejects input and tools that the model does not support", () => {
  const image: Row = { input: ["text", "image"] };
  const file: Row = { input: ["text", "file"] };
  const media = (mediaType: string) =>
    user({ type: "media", media: { kind: "bytes", mediaType, base64: "" }, name: "a" });
  const url = { type: "url", url: "https://example.com/a" };
  const document = user({
    type: "vendor_specific",
    from: "messages",
    value: { type: "document", source: { type: "content", content: [{ type: "image", source: url }] } },
  });
  const search = assistant({
    type: "vendor_specific",
    from: "responses",
    value: { type: "web_search_call", action: { type: "search", sources: [url] } },
  });
  const inResult = [assistant(call("c")), user(result("c", png(1, 1)))];
  const cases: [string, Prompt, Row, string[]][] = [
    ["image", promptOf([user(png(1, 1))]), none, ["messages"]],
    ["image", promptOf([user(png(1, 1))], { protocol: "responses" }), none, ["input"]],
    ["image in a result", promptOf(inResult), none, ["messages"]],
    ["image", promptOf([user(png(1, 1))]), image, ["ok"]],
    ["image", promptOf([user(png(1, 1))]), file, ["messages"]],
    ["PDF", promptOf([media("application/pdf")]), image, ["messages"]],
    ["PDF", promptOf([media("application/pdf")]), file, ["ok"]],
    ["sound", promptOf([media("audio/wav")]), file, ["messages"]],
    ["text file", promptOf([media("text/plain")]), none, ["ok"]],
    ["image in a document", promptOf([document]), none, ["messages"]],
    ["sources of a search", promptOf([search]), none, ["ok"]],
    ["tools", promptOf([], { tools: [tool("t")] }), none, ["ok"]],
    ["tools", promptOf([], { tools: [tool("t")] }), { supported_parameters: ["stop"] }, ["tools"]],
    ["no tools", promptOf([]), { supported_parameters: [] }, ["ok"]],
  ];
  for (const [name, prompt, row, expected] of cases) assertEquals(check(prompt, row), expected, name);
});

Deno.test("checkModelRules() refuses addresses in closed networks, in media and in parts of one vendor", () => {
  const allows = (url: string, privateNetworks?: readonly string[]) => {
    const blocks: ContentBlock[] = [
      { type: "media", media: { kind: "url", url } },
      { type: "vendor_specific", from: "chat", value: { type: "input_audio", input_audio: { data: url } } },
      { type: "vendor_specific", from: "responses", value: { type: "call_output", output: [{ image_url: url }] } },
      {
        type: "vendor_specific",
        from: "messages",
        value: {
          type: "document",
          source: { type: "content", content: [{ type: "image", source: { type: "url", url } }] },
        },
      },
      { type: "tool_result", callId: "c", blocks: [{ type: "media", media: { kind: "url", url } }] },
    ];
    const answers = [false, true].flatMap((vendorState) =>
      blocks.map((block) => {
        try {
          const prompt = promptOf([user(block)], { vendorState });
          checkModelRules(prompt, model({ input: ["image"] }), new UnsupportedParameters(), { privateNetworks });
          return true;
        } catch (error) {
          assertMatch((error as GatewayError).message, /must not be fetched|more than 65536 characters/);
          return false;
        }
      })
    );
    assertEquals(new Set(answers).size, 1, `${url}: ${answers}`);
    return answers[0];
  };
  const metadata = [
    "169.254.169.254",
    "2852039166",
    "0xA9FEA9FE",
    "[::ffff:a9fe:a9fe]",
    "metadata.google.internal.",
    "a@100.100.100.200:80",
  ];
  for (const host of metadata) assertEquals(allows(`http://${host}/x.png`), false, host);
  // Every reader of such an address would take tens of milliseconds.
  assertEquals([allows(`https://a/${"b".repeat(65_000)}`), allows(`https://a/${"b".repeat(66_000)}`)], [true, false]);
  const inner = ["127.0.0.1", "0x7f.1", "localhost", "a.localhost", "10.1.2.3", "[::1]", "[fd00::1]"];
  for (const host of inner) {
    assertEquals(allows(`HTTP://${host}/x.png`), true, host);
    assertEquals(allows(`http://${host}:80/x.png`, ["10.2.0.0/16"]), false, host);
  }
  assertEquals(allows("http://10.2.0.1/x.png", ["10.2.0.0/16"]), true);
  assertEquals(allows("https://example.com/x.png", []), true);
});

Deno.test("checkModelRules() refuses everything but bytes and public addresses in parts of one vendor", () => {
  const audio = (data: string): ContentBlock => ({
    type: "vendor_specific",
    from: "chat",
    value: { type: "input_audio", input_audio: { data, format: "wav" } },
  });
  const screenshot = (url: Json): ContentBlock => ({
    type: "vendor_specific",
    from: "responses",
    value: { type: "computer_call_output", output: { type: "computer_screenshot", image_url: url } },
  });
  const page = (source: JsonObject): ContentBlock => ({
    type: "vendor_specific",
    from: "messages",
    value: {
      type: "web_fetch_tool_result",
      content: { type: "web_fetch_result", content: { type: "document", source } },
    },
  });
  const allows = (block: ContentBlock) => check(promptOf([user(block)]), {})[0] === "ok";
  const closed = [
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "gs://bucket/x",
    "ftp://example.com/x.png",
    "ht\ttp://169.254.169.254/x.png",
    "jar:http://169.254.169.254!/x.png",
    "//169.254.169.254/x.png",
    "./x.png",
  ];
  for (const url of closed) {
    assertEquals([audio(url), screenshot(url), screenshot({ url })].map(allows), [false, false, false], url);
  }
  for (const url of ["data:image/png;base64,AAAA", "DATA:,x", "https://example.com/x.png"]) {
    assertEquals([audio(url), screenshot(url), screenshot({ url })].map(allows), [true, true, true], url);
  }
  for (const data of ["", "UklGRg==", "UklG\nRg==", "-_-_"]) assertEquals(allows(audio(data)), true, data);
  assertEquals([screenshot(null), screenshot("")].map(allows), [true, true]);
  // The text of a page is not an address.
  const text = { type: "text", media_type: "text/plain", data: "file: a page. http://127.0.0.1/ is this machine" };
  assertEquals([page(text), page({ type: "url", url: "file:///etc/passwd" })].map(allows), [true, false]);
});
