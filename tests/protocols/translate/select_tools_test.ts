import { assertEquals } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import type { Prompt, Tool, ToolChoice } from "../../../lib/protocols/canonical/types.ts";
import { isLegal } from "../../../lib/protocols/translate/legal_names.ts";
import { renameTools } from "../../../lib/protocols/translate/tool_names.ts";
import { selectTools } from "../../../lib/protocols/translate/select_tools.ts";
import { assistant, call, promptOf, result, user } from "../canonical/messages.ts";
import { adapt, DIALECTS, targetOf } from "./targets.ts";

const SEARCH: Tool = { type: "hosted", from: "messages", value: { type: "web_search_20250305", name: "web_search" } };
const A: Tool = { type: "function", name: "a" };
const B: Tool = { type: "custom", name: "b", namespace: "ns" };

Deno.test("a choice is reduced to what the target supports", () => {
  const cases: [ToolChoice | undefined, Tool[], Pick<Prompt, "tools" | "toolChoice">][] = [
    [undefined, [A], { tools: [A] }],
    [{ type: "auto" }, [A], { tools: [A], toolChoice: { type: "auto" } }],
    [{ type: "none" }, [A], { tools: [A], toolChoice: { type: "none" } }],
    [{ type: "auto" }, [], { tools: [] }],
    [{ type: "auto" }, [SEARCH], { tools: [] }],
    [{ type: "required" }, [A], { tools: [A], toolChoice: { type: "required" } }],
    [{ type: "tool", name: "a" }, [A], { tools: [A], toolChoice: { type: "tool", name: "a" } }],
    [{ type: "tool", name: "ns.b", custom: true }, [B], {
      tools: [B],
      toolChoice: { type: "tool", name: "ns.b", custom: true },
    }],
    [{ type: "allowed", mode: "auto", names: ["b"] }, [A, B], { tools: [B], toolChoice: { type: "auto" } }],
    [{ type: "allowed", mode: "required", names: ["a", "x"] }, [A, B], {
      tools: [A],
      toolChoice: { type: "required" },
    }],
    [{ type: "allowed", mode: "auto", names: ["x"] }, [A], { tools: [A], toolChoice: { type: "none" } }],
    [{ type: "allowed", mode: "auto", names: ["x"] }, [SEARCH], { tools: [] }],
  ];
  for (const [toolChoice, tools, expected] of cases) {
    const requested = promptOf([], { protocol: "responses", tools, ...(toolChoice !== undefined && { toolChoice }) });
    const { tools: left, toolChoice: choice } = selectTools(requested, targetOf("chat"));
    assertEquals({ tools: left, ...(choice !== undefined && { toolChoice: choice }) }, expected);
  }
});

Deno.test("legal names stay, others become legal and unique everywhere", () => {
  const long = "n".repeat(70);
  const { dialect } = DIALECTS.chat;
  const { prompt } = runToEnd(renameTools(
    promptOf([assistant(call("1", long), call("2", "gone tool")), user(result("1"), result("2"))], {
      tools: ["ok-name_1", "a.b", "a b", long, "a_b"].map((name): Tool => ({ type: "function", name })),
      toolChoice: { type: "tool", name: "a b" },
    }),
    dialect,
  ));
  const names = prompt.tools.flatMap((tool) => tool.type === "hosted" ? [] : [tool.name]);
  assertEquals([names[0], names[4]], ["ok-name_1", "a_b"]);
  assertEquals(new Set(names).size, 5);
  for (const name of names) assertEquals(isLegal(name, dialect.toolName), true, name);
  assertEquals(names[3]?.length, 64);
  assertEquals(prompt.toolChoice, { type: "tool", name: names[2] ?? "" });
  const called = prompt.messages[0]?.blocks.flatMap((block) => block.type === "tool_call" ? [block.name] : []);
  assertEquals(called?.[0], names[3]);
  assertEquals(isLegal(called?.[1] ?? "", dialect.toolName), true);
});

Deno.test("a tool in a namespace and a tool with the joined name are separate", () => {
  const tools: Tool[] = [
    { type: "function", name: "b", namespace: "a" },
    { type: "function", name: "a__b" },
    { type: "function", name: "b" },
    { type: "custom", name: "b" },
  ];
  const { prompt, restore } = adapt(
    promptOf([user("hi")], { protocol: "responses", tools }),
    targetOf("mistral"),
  );
  const names = prompt.tools.flatMap((tool) => tool.type === "hosted" ? [] : [tool.name]);
  assertEquals(new Set(names).size, 4);
  assertEquals([names[1], names[2]], ["a__b", "b"]);
  const transform = restore();
  transform({ type: "start" });
  const opened = names.map((name, index) => {
    const [open] = transform({ type: "open", index, block: { type: "tool_call", id: "i", name } });
    transform({ type: "close", index });
    return open?.type === "open" ? open.block : undefined;
  });
  const block = { type: "tool_call", id: "i" };
  assertEquals<unknown>(opened, [
    { ...block, name: "b", namespace: "a" },
    { ...block, name: "a__b" },
    { ...block, name: "b" },
    { ...block, name: "b", custom: true },
  ]);
});

Deno.test("a past call matches the best fitting tool, the first of several", () => {
  const tools: Tool[] = [
    { type: "custom", name: "b", namespace: "a" },
    { type: "function", name: "b", namespace: "c" },
    { type: "function", name: "b" },
    { type: "custom", name: "d" },
    { type: "custom", name: "e", namespace: "x" },
    { type: "function", name: "e", namespace: "a" },
    { type: "function", name: "e", namespace: "c" },
  ];
  const cases: [{ name: string; namespace?: string; custom?: boolean }, string][] = [
    [{ name: "b" }, "b"],
    [{ name: "b", custom: true }, "a__b"],
    [{ name: "b", namespace: "c" }, "c__b"],
    [{ name: "b", namespace: "c", custom: true }, "c__b"],
    [{ name: "b", namespace: "x" }, "x__b"],
    [{ name: "d" }, "d"],
    [{ name: "e" }, "a__e"],
    [{ name: "f" }, "f"],
  ];
  const blocks = cases.map(([called], index) => ({ ...call(String(index), called.name), ...called }));
  const { prompt } = runToEnd(renameTools(promptOf([assistant(...blocks)], { tools }), DIALECTS.chat.dialect));
  const names = prompt.messages[0]?.blocks.map((block) => block.type === "tool_call" && block.name);
  assertEquals(names, cases.map(([, name]) => name));
});

Deno.test("namespaces stay if the target supports them", () => {
  const tools: Tool[] = [{ type: "function", name: "b c", namespace: "a" }, { type: "function", name: "b c" }];
  const { prompt } = runToEnd(renameTools(promptOf([], { tools }), DIALECTS.responses.dialect));
  assertEquals(prompt.tools.map((tool) => tool.type === "hosted" ? "" : tool.namespace), ["a", undefined]);
});
