/** Screens the tools of a body: removes those that its caller may not use from tool lists and from `tool_choice`. */
import { GatewayError } from "../errors.ts";
import { isObject, type Json, type JsonObject, type JsonPath, withoutPaths } from "../json/mod.ts";
import {
  type Extra,
  extraOfTool,
  extraOfToolMember,
  type ExtrasTable,
  spellingsInTool,
  stateInTool,
  toolMemberOf,
} from "../protocols/extras.ts";
import type { BodyEdits } from "./body_edits.ts";
import type { ExtraPermissions } from "./extra_permissions.ts";

/** The result of screening a list of tools. */
interface ScreenedList {
  /** Number of tools that stay. */
  left: number;
  /** Paths to remove. */
  cuts: JsonPath[];
}

/** Data for screening tools. */
export interface ToolScreeningParts {
  /** The body. If a scan recognized the tools, they are 0 here. */
  value: JsonObject;
  /** Number of tools that a scan recognized. None of them is hosted. */
  scanned: number;
  table: ExtrasTable;
  permissions: ExtraPermissions;
  edits: BodyEdits;
}

/** Screens the tools of one body. */
export class ToolScreening {
  readonly #value: JsonObject;
  readonly #scanned: number;
  readonly #table: ExtrasTable;
  readonly #permissions: ExtraPermissions;
  readonly #edits: BodyEdits;
  readonly #removed = new Set<string>();

  constructor({ value, scanned, table, permissions, edits }: ToolScreeningParts) {
    this.#value = value;
    this.#scanned = scanned;
    this.#table = table;
    this.#permissions = permissions;
    this.#edits = edits;
  }

  /**
   * Screens the lists of tools, then `tool_choice`.
   * @throws {GatewayError} `invalid` as the constructor of `ScreenedBody`
   */
  screen(): void {
    const { nested } = this.#table;
    const { tool_choice: choice } = this.#value;
    let hasTools = this.#screenTools();
    if (nested !== undefined && Array.isArray(this.#value[nested.list])) {
      hasTools = this.#screenEntries(nested) || hasTools;
    }
    if (choice !== undefined && choice !== null) this.#screenChoice(choice, hasTools);
    if (hasTools || this.#removed.size === 0) return;
    // Some upstreams refuse settings of tools without tools.
    for (const name of ["tool_choice", "parallel_tool_calls", "toolConfig"]) {
      if (this.#value[name] !== undefined) this.#edits.remove(name);
    }
  }

  /** Checks a tool that is defined inside an item. @throws {GatewayError} `invalid` if it may not be used */
  checkTool(tool: JsonObject, param: string): void {
    const [spelling] = spellingsInTool(tool);
    if (spelling !== undefined) {
      const name = String(spelling.at(-1));
      throw spellingError(`${param}.${name}`, toolMemberOf(name));
    }
    const extra = extraOfTool(tool, this.#table);
    if (extra === undefined) return;
    this.#refuseState(tool, param);
    if (!this.#permissions.takes(extra, { tool })) throw this.#permissions.refusal(extra, param);
  }

  /** Refuses a hosted tool that refers to vendor state: without its store or files it would do something else. */
  #refuseState(tool: Json | undefined, path: string): void {
    const state = stateInTool(tool);
    if (state === undefined || this.#permissions.vendorState) return;
    throw this.#permissions.refusal({ feature: "vendor_state" }, path + state);
  }

  /** Screens the member `tools`. @returns whether any tool is left */
  #screenTools(): boolean {
    const { tools } = this.#value;
    if (this.#scanned > 0) return true;
    if (!Array.isArray(tools) || tools.length === 0) return false;
    const { left, cuts } = this.#table.toolMembers === undefined
      ? this.#screenList(tools, "tools")
      : this.#screenToolMembers(tools, "tools");
    if (left === 0) this.#edits.remove("tools");
    else if (cuts.length > 0) this.#edits.cut("tools", cuts);
    return left > 0;
  }

  #screenList(tools: readonly Json[], path: string): ScreenedList {
    const list: ScreenedList = { left: 0, cuts: [] };
    for (const [index, entry] of tools.entries()) {
      if (!isObject(entry)) {
        list.left++;
        continue;
      }
      const spellings = spellingsInTool(entry);
      for (const spelling of spellings) {
        const name = String(spelling.at(-1));
        this.#permissions.dropSpelling(`tools.${name}`, toolMemberOf(name));
        list.cuts.push([index, ...spelling]);
      }
      const tool = spellings.length === 0 ? entry : withoutPaths(entry, spellings);
      let stays: boolean;
      if (tool.type === "namespace" && Array.isArray(tool.tools)) {
        const inner = this.#screenList(tool.tools, `${path}[${index}].tools`);
        stays = inner.left > 0 || inner.cuts.length === 0;
        if (stays) { for (const cut of inner.cuts) list.cuts.push([index, "tools", ...cut]); }
      } else stays = this.#mayStay(tool, `${path}[${index}]`);
      if (stays) list.left++;
      else list.cuts.push([index]);
    }
    return list;
  }

  /**
   * Screens tools that are described by member names. Members that are not permitted are removed, and so are empty
   * tools.
   */
  #screenToolMembers(tools: readonly Json[], path: string): ScreenedList {
    const list: ScreenedList = { left: 0, cuts: [] };
    for (const [index, tool] of tools.entries()) {
      const names = isObject(tool) ? Object.keys(tool) : [];
      const removed = names.filter((name) =>
        isObject(tool) && !this.#mayMemberStay(name, tool[name], `${path}[${index}].${name}`)
      );
      if (removed.length > 0 && removed.length === names.length) list.cuts.push([index]);
      else {
        list.left++;
        for (const name of removed) list.cuts.push([index, name]);
      }
    }
    return list;
  }

  /** Returns whether a member of a tool may stay. Records it as removed otherwise. */
  #mayMemberStay(name: string, value: Json | undefined, path: string): boolean {
    const extra = value === null ? undefined : extraOfToolMember(name, this.#table);
    if (extra === undefined) return true;
    this.#refuseState(value, path);
    return this.#permissions.takes(extra) || this.#drop(extra, { name, type: name });
  }

  /** Returns whether a tool may stay. Records it as removed otherwise. */
  #mayStay(tool: JsonObject, path: string): boolean {
    const extra = extraOfTool(tool, this.#table);
    if (extra === undefined) return true;
    this.#refuseState(tool, path);
    const type = String(tool.type);
    return this.#permissions.takes(extra, { tool }) || this.#drop(extra, { name: String(tool.name ?? type), type });
  }

  /** Records that a tool is removed. @returns false */
  #drop(extra: Extra, { name, type }: { name: string; type: string }): false {
    this.#removed.add(name);
    this.#permissions.drop(extra, `tools.${type}`);
    return false;
  }

  /**
   * Screens the tools that entries of another list define, such as input items.
   * @returns whether any tool is left there
   */
  #screenEntries({ list, types }: { list: string; types: ReadonlySet<string> }): boolean {
    let hasTools = false;
    const cuts: JsonPath[] = [];
    for (const [index, entry] of (this.#value[list] as Json[]).entries()) {
      const definesTools = isObject(entry) && typeof entry.type === "string" && types.has(entry.type);
      if (!definesTools || !Array.isArray(entry.tools)) continue;
      const inner = this.#screenList(entry.tools, `${list}[${index}].tools`);
      hasTools ||= inner.left > 0;
      for (const cut of inner.cuts) cuts.push([index, "tools", ...cut]);
    }
    if (cuts.length > 0) this.#edits.cut(list, cuts);
    return hasTools;
  }

  #screenChoice(choice: Json, hasTools: boolean): void {
    const isForced = choice === "required" || (isObject(choice) && choice.type === "any");
    if (isForced && !hasTools && this.#removed.size > 0) throw this.#forcedToolError();
    if (!isObject(choice)) return;
    const allowed = isObject(choice.allowed_tools) ? choice.allowed_tools : choice;
    if (choice.type === "allowed_tools") return this.#screenAllowed(allowed);
    if (choice.type === this.#table.namedChoice) {
      if (this.#removed.has(String(choice.name))) throw this.#forcedToolError();
      return;
    }
    if (CLIENT_CHOICES.has(String(choice.type))) return;
    const extra = extraOfTool(choice, this.#table);
    if (extra !== undefined && !this.#permissions.permits(extra)) throw this.#permissions.refusal(extra, "tool_choice");
  }

  /** Removes forbidden tools from the tools that a choice allows. If none is left, the choice becomes `none`. */
  #screenAllowed({ tools, mode }: JsonObject): void {
    if (!Array.isArray(tools)) return;
    const forbidden = tools.flatMap((tool, index) => {
      const extra = isObject(tool) ? extraOfTool(tool, this.#table) : undefined;
      return extra === undefined || this.#permissions.permits(extra) ? [] : [{ index, extra }];
    });
    const [first] = forbidden;
    if (first === undefined) return;
    const left = tools.filter((_, index) => !forbidden.some((tool) => tool.index === index));
    if (left.length === 0 && mode === "required") throw this.#permissions.refusal(first.extra, "tool_choice");
    const choice = this.#value.tool_choice;
    const inner = isObject(choice) && isObject(choice.allowed_tools) ? { allowed_tools: { mode, tools: left } } : {
      tools: left,
    };
    this.#edits.set("tool_choice", left.length === 0 || !isObject(choice) ? "none" : { ...choice, ...inner });
  }

  #forcedToolError(): GatewayError {
    const [tool = ""] = this.#removed;
    const { groupName } = this.#permissions;
    return new GatewayError(
      "invalid",
      `Cannot use tool_choice: it selects the hosted tool "${tool}", which group "${groupName}" may not use. ` +
        `The operator can allow it in groups.${groupName}.hosted_tools`,
      { param: "tool_choice" },
    );
  }
}

/** Types of `tool_choice` that name a tool of the client, or no tool. */
const CLIENT_CHOICES: ReadonlySet<string> = new Set(["auto", "none", "any", "required", "tool", "function", "custom"]);

/** Returns the error for a member name that some servers treat as the name `usual`. */
export function spellingError(param: string, usual: string): GatewayError {
  return new GatewayError("invalid", `Cannot use ${param}: some servers treat it as ${usual}`, { param });
}
