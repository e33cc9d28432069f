/** Answers that clients send back: a model and its server wrote their calls, with names and ids, and their parts. */
import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, WHOLE } from "../../upstream/replies.ts";
import { json, startUpstream } from "../../upstream/mod.ts";

/** A round of one call, as the client of each protocol sends it. */
function round(protocol: Protocol, id: string, name: string): JsonObject {
  switch (protocol) {
    case "chat":
      return {
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id, type: "function", function: { name, arguments: "{}" } }],
          },
          { role: "tool", tool_call_id: id, content: "Done" },
        ],
      };
    case "responses":
      return {
        input: [
          { role: "user", content: "Go" },
          { type: "function_call", call_id: id, name, arguments: "{}" },
          { type: "function_call_output", call_id: id, output: "Done" },
        ],
      };
    case "messages":
      return {
        messages: [
          { role: "user", content: "Go" },
          { role: "assistant", content: [{ type: "tool_use", id, name, input: {} }] },
          { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "Done" }] },
        ],
      };
    case "gemini":
      return {
        contents: [
          { role: "user", parts: [{ text: "Go" }] },
          { role: "model", parts: [{ functionCall: { id, name, args: {} } }] },
          { role: "user", parts: [{ functionResponse: { id, name, response: { output: "Done" } } }] },
        ],
      };
  }
}

Deno.test("a client can send back any name and id that a model's server wrote", async () => {
  const calls: [id: string, name: string][] = [
    ["call_1", "read the file"],
    ["call_1", "naïve/tool"],
    ["call_1", "x".repeat(256)],
    // llama.cpp leaves ids empty, LiteLLM puts Gemini's signatures into them.
    ["", "read"],
    [`call_1__thought__${"A".repeat(4_000)}`, "read"],
  ];
  for (const to of PROTOCOLS) {
    await using server = startUpstream(() => json(WHOLE[to]));
    await using gateway = startGateway(oneModel(to, server.url));
    for (const from of PROTOCOLS) {
      for (const [id, name] of calls) {
        const response = await gateway.ask(from, prompt(from, round(from, id, name)));
        assertEquals(response.status, 200, `${from} to ${to}: ${await response.text()}`);
        assertEquals(server.requests.pop()?.body.includes("Done"), true);
      }
    }
  }
});

Deno.test("an output that names its tool in place of a call reaches every model", async () => {
  const item = { type: "function_call_output", name: "watch", output: "The build failed" };
  for (const to of PROTOCOLS) {
    await using server = startUpstream(() => json(WHOLE[to]));
    await using gateway = startGateway(oneModel(to, server.url));
    for (const output of [item, { ...item, call_id: null }]) {
      const input = [{ role: "user", content: "Watch the build" }, output];
      const response = await gateway.ask("responses", prompt("responses", { input }));
      assertEquals(response.status, 200, `${to}: ${await response.text()}`);
      const request = server.requests.pop();
      if (to === "responses") assertEquals(request?.json.input, input);
      else assertEquals(request?.body.includes("The build failed"), true, to);
      const echo = await (await gateway.ask("responses", { model: "sluice/echo", input })).json();
      assertEquals(echo.output[0].content[0].text, "The build failed");
    }
  }
});

Deno.test("a client can send back an answer in Mistral's parts, to any model", async () => {
  const content = [
    { type: "thinking", thinking: [{ type: "text", text: "Hm" }], closed: true },
    { type: "text", text: "Noon" },
    { type: "reference", reference_ids: [1] },
  ];
  const messages = [{ role: "user", content: "When?" }, { role: "assistant", content }, {
    role: "user",
    content: "So?",
  }];
  for (const to of PROTOCOLS) {
    await using server = startUpstream(() => json(WHOLE[to]));
    await using gateway = startGateway(oneModel(to, server.url));
    const response = await gateway.ask("chat", prompt("chat", { messages }));
    assertEquals(response.status, 200, `${to}: ${await response.text()}`);
    const [request] = server.requests;
    if (to === "chat") assertEquals(request?.json.messages, messages);
    else assertEquals([request?.body.includes("Noon"), request?.body.includes("Hm")], [true, false], to);
    const dropped = to === "chat" ? null : "reference, reasoning_content";
    assertEquals(response.headers.get("x-sluice-dropped"), dropped, to);
    const echo = await gateway.ask("chat", { model: "sluice/echo", messages });
    assertEquals(echo.status, 200, await echo.text());
  }
});
