/** Drops tools that the upstream does not know, and fits the tool choice to those that are left. */
import type { Prompt, Protocol, Tool, ToolChoice } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { AdaptTarget } from "../upstream_codec.ts";

/**
 * Drops hosted tools of other vendors and adds them to `dropped` (`tools.web_search`), reduces the tools to those of an
 * `allowed` choice, and removes a choice if there are no tools. In the client's own protocol `allowed` stays.
 * @throws {GatewayError} `invalid`, if the choice forces a tool that is missing or dropped
 */
export function selectTools(prompt: Prompt, target: AdaptTarget): Prompt {
  const { hostedFrom } = target.dialect;
  const tools = prompt.tools.filter((tool) => {
    const isKnown = tool.type !== "hosted" || hostedFrom.includes(tool.from);
    if (!isKnown) target.dropped.add(`tools.${hostedType(tool)}`);
    return isKnown;
  });
  const { toolChoice, parallelToolCalls, ...others } = prompt;
  // Without tools a choice is meaningless, but the loss of one that forces a call is reported.
  const hasNoTools = prompt.tools.length === 0;
  if (hasNoTools && toolChoice !== undefined && toolChoice.type !== "auto" && toolChoice.type !== "none") {
    target.dropped.add("tool_choice");
  }
  const chosen = hasNoTools ? { tools } : fitChoice({ ...prompt, tools }, target);
  return {
    ...others,
    ...chosen,
    // Some upstreams refuse it without tools.
    ...(parallelToolCalls !== undefined && chosen.tools.length > 0 && { parallelToolCalls }),
  };
}

function hostedType({ value }: Extract<Tool, { type: "hosted" }>): string {
  return typeof value.type === "string" ? value.type : Object.keys(value)[0] ?? "hosted";
}

/** True if a choice of this name refers to the tool. Some clients put the namespace before the name. */
export function isToolNamed(tool: Tool, name: string): boolean {
  if (tool.type === "hosted") return tool.value.name === name;
  return tool.name === name || (tool.namespace !== undefined && `${tool.namespace}.${tool.name}` === name);
}

function fitChoice(
  { protocol, tools, toolChoice }: Prompt,
  target: AdaptTarget,
): { tools: Tool[]; toolChoice?: ToolChoice } {
  switch (toolChoice?.type) {
    case undefined:
      return { tools };
    case "auto":
    case "none":
      return tools.length === 0 ? { tools } : { tools, toolChoice };
    case "required":
      if (tools.length === 0) throw refusal(protocol, "there are no tools to call");
      return { tools, toolChoice };
    case "tool": {
      const { name } = toolChoice;
      if (!tools.some((tool) => isToolNamed(tool, name))) throw refusal(protocol, `there is no tool called "${name}"`);
      return { tools, toolChoice };
    }
    case "allowed": {
      const allowed = tools.filter((tool) => toolChoice.names.some((name) => isToolNamed(tool, name)));
      if (allowed.length === 0 && toolChoice.mode === "required") {
        throw refusal(protocol, "none of the allowed tools is available");
      }
      if (tools.length === 0) return { tools };
      if (protocol === target.protocol) return { tools, toolChoice };
      // The tools stay, because past calls in the conversation may refer to them.
      if (allowed.length === 0) return { tools, toolChoice: { type: "none" } };
      return { tools: allowed, toolChoice: { type: toolChoice.mode } };
    }
    case "vendor_specific":
      if (toolChoice.from !== target.protocol) {
        throw refusal(protocol, "it names a tool that only another vendor supports");
      }
      return { tools, toolChoice };
  }
}

function refusal(protocol: Protocol, what: string): GatewayError {
  return new GatewayError("invalid", `Cannot use this tool choice: ${what}`, {
    param: PARAMETER_NAMES[protocol].toolChoice,
  });
}
