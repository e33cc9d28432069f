/** Refuses conversations that vendors refuse, so that a client in development fails as it would in production. */
import type { Message, Prompt } from "../../protocols/canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";

/**
 * Refuses duplicate tool names, results of calls that were not made, and, in the messages protocol, empty texts.
 * @param request the body that the client sent, because the canonical form has no empty texts
 * @throws {GatewayError} `invalid`
 */
export function checkVendorRules(prompt: Prompt, request: JsonObject): void {
  checkToolNames(prompt);
  checkResults(prompt);
  if (prompt.protocol === "messages") checkTexts(request);
}

function checkToolNames({ tools }: Prompt): void {
  const names = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    if (tool.type === "hosted") continue;
    const name = tool.namespace === undefined ? tool.name : `${tool.namespace}.${tool.name}`;
    if (names.has(name)) {
      throw new GatewayError("invalid", `Cannot use two tools named "${name}": tool names must be unique`, {
        param: `tools[${index}]`,
      });
    }
    names.add(name);
  }
}

/**
 * Checks tool results. In responses they may come anywhere after the call, elsewhere only right after the calling turn.
 */
function checkResults({ protocol, messages }: Prompt): void {
  let calls = new Set<string>();
  let role: Message["role"] | undefined;
  for (const message of messages) {
    if (message.role === "system") continue;
    if (protocol !== "responses" && message.role === "assistant" && role !== "assistant") calls = new Set();
    role = message.role;
    for (const block of message.blocks) {
      if (block.type === "tool_call") calls.add(block.id);
      // An output of responses may name its tool in place of a call.
      if (protocol === "responses" && block.type === "tool_result" && block.callId === "") continue;
      if (block.type === "tool_result" && !calls.has(block.callId)) throw orphanError(protocol, block.callId);
    }
  }
}

/** Returns the error for a result without a call, in the words of the protocol's vendor, which clients match. */
function orphanError(protocol: Prompt["protocol"], id: string): GatewayError {
  switch (protocol) {
    case "chat":
      return new GatewayError(
        "invalid",
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls': " +
          `no call has the id ${JSON.stringify(id)}`,
        { param: "messages" },
      );
    case "responses":
      return new GatewayError("invalid", `No tool call found for function call output with call_id ${id}`, {
        param: "input",
      });
    case "messages":
      return new GatewayError(
        "invalid",
        `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a ` +
          "corresponding `tool_use` block in the previous message",
        { param: "messages" },
      );
    case "gemini":
      return new GatewayError(
        "invalid",
        "Please ensure that function response turn comes immediately after a function call turn, and that each " +
          "function response has a function call with its name",
        { param: "contents" },
      );
  }
}

function checkTexts({ system, messages }: JsonObject): void {
  checkBlocks(system, "system");
  for (const message of Array.isArray(messages) ? messages : []) {
    if (isObject(message)) checkBlocks(message.content, "messages");
  }
}

function checkBlocks(content: Json | undefined, param: string): void {
  if (!Array.isArray(content)) return;
  for (const block of content) {
    if (isObject(block) && block.type === "text" && block.text === "") {
      throw new GatewayError("invalid", "text content blocks must be non-empty", { param });
    }
  }
}
