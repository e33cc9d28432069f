import { assertEquals, assertThrows } from "@std/assert";
import type { ContentBlock, Message } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { type LastUserTurn, readLastUserTurn } from "../../../lib/upstreams/embedded/last_user_turn.ts";
import { assistant, call, result, system, user } from "../../protocols/canonical/messages.ts";
import { png } from "./prompts.ts";

const image: ContentBlock = { type: "media", media: { kind: "url", url: "https://example.com/a.png" } };
const report: ContentBlock = {
  type: "media",
  media: { kind: "bytes", mediaType: "application/pdf", base64: "AAAA" },
  name: "report.pdf",
};
const failed: ContentBlock = {
  type: "tool_result",
  callId: "c",
  blocks: [{ type: "text", text: "no" }],
  isError: true,
};

/** A result of Claude Code's search for tools. */
const loaded: ContentBlock = {
  type: "vendor_specific",
  from: "messages",
  value: { type: "tool_reference", tool_name: "clock" },
};

const cases: [string, Message[], Partial<LastUserTurn>][] = [
  ["nobody spoke", [], { text: "" }],
  ["only the system spoke", [system("be brief")], { text: "" }],
  ["one message", [user("hi")], { text: "hi" }],
  ["text as it is", [user("  a\r\n\tb  \n")], { text: "  a\r\n\tb  \n" }],
  ["last of several", [user("one"), assistant("two"), user("three")], { text: "three" }],
  ["last of two in a row", [user("context"), user("question")], { text: "question" }],
  ["blocks by line", [user("a", "b")], { text: "a\nb" }],
  ["notes of an agent", [user("<system-reminder>\nx\n</system-reminder>\n", "hi")], { text: "hi", words: "hi" }],
  ["nothing but notes", [user(" <system-reminder>x</system-reminder>\n<system-reminder></system-reminder>")], {
    text: "",
  }],
  ["a note within words", [user("<system-reminder>x</system-reminder> hi")], {
    text: "<system-reminder>x</system-reminder> hi",
  }],
  ["a note that does not end", [user("<system-reminder>hi")], { text: "<system-reminder>hi" }],
  ["white space", [user("a", "  ")], { text: "a\n  " }],
  ["notes beside results", [assistant(call("c")), user(result("c", "1"), "<system-reminder>x</system-reminder>")], {
    text: "",
    results: "1",
  }],
  ["system message after it", [user("hi"), system("later")], { text: "hi" }],
  ["prefill after it", [user("hi"), assistant("Sure, ")], { text: "hi" }],
  ["only the assistant spoke", [assistant("hi")], { text: "" }],
  ["image of known size", [user("see", png(64, 48), "there")], {
    text: "see\n[image 64x48 png]\nthere",
    words: "see\nthere",
  }],
  ["image at a URL", [user(image)], { text: "[image https://example.com/a.png]", words: "" }],
  ["image that cannot be read", [
    user({ type: "media", media: { kind: "bytes", mediaType: "image/png", base64: "AAAA" } }),
  ], { text: "[image png]" }],
  ["file", [user(report)], { text: "[file report.pdf application/pdf]" }],
  ["file without name", [
    user({ type: "media", media: { kind: "bytes", mediaType: "text/plain", base64: "AAAA" } }),
  ], { text: "[file text/plain]" }],
  ["file at a URL", [
    user({ type: "media", media: { kind: "url", url: "https://e.com/a.pdf", mediaType: "application/pdf" } }),
  ], { text: "[file https://e.com/a.pdf application/pdf]" }],
  ["results", [user("q"), assistant(call("c"), call("d")), user(result("c", "1"), result("d", "2"))], {
    text: "",
    results: "1\n2",
  }],
  ["results in several messages", [user("q"), assistant(call("c")), user(result("c", "1")), user(result("d", "2"))], {
    text: "",
    results: "1\n2",
  }],
  ["results and text beside", [assistant(call("c")), user(result("c", "1"), "and?")], { text: "and?", results: "1" }],
  ["results and a message after", [assistant(call("c")), user(result("c", "1")), user("and?")], {
    text: "and?",
    results: "1",
  }],
  ["failed result", [assistant(call("c")), user(failed)], { results: "[error] no" }],
  ["empty result", [assistant(call("c")), user(result("c"))], { results: "" }],
  ["image in a result", [assistant(call("c")), user(result("c", "got", png(2, 1)))], {
    results: "got\n[image 2x1 png]",
  }],
  ["loaded tool", [assistant(call("c")), user(result("c", loaded))], { results: "[Loaded tool: clock]" }],
  ["old results", [assistant(call("c")), user(result("c", "1")), assistant("1"), user("thanks")], { text: "thanks" }],
  ["unanswered call", [user("q"), assistant(call("c"))], { text: "q", called: true }],
  ["foreign block of the assistant's", [
    assistant({ type: "vendor_specific", from: "messages", value: { type: "server_tool_use" } }),
    user("hi"),
  ], { text: "hi" }],
  ["foreign block of an earlier turn", [
    user({ type: "vendor_specific", from: "messages", value: { type: "container_upload" } }),
    assistant("ok"),
    user("hi"),
  ], { text: "hi" }],
];

Deno.test("readLastUserTurn() reads the last user message and tool results", () => {
  for (const [name, messages, expected] of cases) {
    const turn = readLastUserTurn({ messages });
    const whole = { text: "", words: expected.text ?? "", results: undefined, called: false, ...expected };
    assertEquals(turn, { ...whole, words: expected.words ?? (turn.words === "" ? "" : whole.words) }, name);
  }
});

Deno.test("readLastUserTurn() rejects blocks that it cannot read", () => {
  const foreign: ContentBlock = { type: "vendor_specific", from: "messages", value: { type: "container_upload" } };
  for (const messages of [[user("see", foreign)], [assistant(call("c")), user(result("c", foreign))]]) {
    const error = assertThrows(() => readLastUserTurn({ messages }), GatewayError, '"container_upload"');
    assertEquals([error.kind, error.param], ["invalid", "messages"]);
  }
});
