/** Screens the tools of a body: those that its caller may not use are taken out, wherever they are listed or chosen. */
import { GatewayError } from "../errors.ts";
import { isObject, type Json, type JsonObject, type JsonPath, withoutPaths } from "../json/mod.ts";
import {
  extraOfTool,
  extraOfToolMember,
  type ExtrasTable,
  spellingsInTool,
  stateInTool,
  usualName,
} from "../protocols/extras.ts";
import type { BodyEdits, ExtraPermissions } from "./extras.ts";

/** The allowed tools of a list, and the paths to cut out of its text. */
interface ToolList {
  tools: Json[];
  cuts: JsonPath[];
}

/** Data for screening tools. */
export interface ToolScreeningParts {
  /** The body, with 0 in place of tools that a scan recognized. */
  value: JsonObject;
  /** Number of those tools: none of them is hosted. */
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
  /** Names of tools that were taken out. */
  readonly #removed = new Set<string>();

  constructor({ value, scanned, table, permissions, edits }: ToolScreeningParts) {
    this.#value = value;
    this.#scanned = scanned;
    this.#table = table;
    this.#permissions = permissions;
    this.#edits = edits;
  }

  /** Screens tool lists, then the choice among them. */
  screen(): void {
    const { nested } = this.#table;
    const { tool_choice: choice } = this.#value;
    let left = this.#screenTools();
    if (nested !== undefined && Array.isArray(this.#value[nested.list])) left = this.#screenEntries(nested) || left;
    if (choice !== undefined && choice !== null) this.#screenChoice(choice, left);
    if (!left && this.#removed.size > 0) this.#dropVoid();
  }

  /** Checks a tool that is defined within an item. @throws {GatewayError} `invalid` where it may not be used */
  checkTool(tool: JsonObject, param: string): void {
    const [spelling] = spellingsInTool(tool);
    if (spelling !== undefined) {
      const name = String(spelling.at(-1));
      throw spellingError(`${param}.${name}`, usualName(name));
    }
    const extra = extraOfTool(tool, this.#table);
    if (extra === undefined) return;
    const state = stateInTool(tool);
    if (state !== undefined && !this.#permissions.vendorState) {
      throw this.#permissions.refusal({ asks: "vendor_state" }, param + state);
    }
    if (!this.#permissions.takes(extra, tool)) throw this.#permissions.refusal(extra, param);
  }

  /** @returns whether any tool is left */
  #screenTools(): boolean {
    const { tools } = this.#value;
    if (this.#scanned > 0) return true;
    if (!Array.isArray(tools) || tools.length === 0) return false;
    const list = this.#table.toolMembers === undefined
      ? this.#screenList(tools, "tools")
      : this.#screenToolMembers(tools, "tools");
    if (list.cuts.length === 0) return true;
    if (list.tools.length === 0) this.#edits.remove("tools");
    else this.#edits.cut("tools", list.tools, list.cuts);
    return list.tools.length > 0;
  }

  #screenList(tools: readonly Json[], path: string): ToolList {
    const permitted: ToolList = { tools: [], cuts: [] };
    for (const [index, entry] of tools.entries()) {
      let tool = entry;
      if (!isObject(tool)) {
        permitted.tools.push(tool);
        continue;
      }
      const spellings = spellingsInTool(tool);
      if (spellings.length > 0) {
        for (const spelling of spellings) {
          const name = String(spelling.at(-1));
          this.#permissions.dropSpelling(`tools.${name}`, usualName(name));
          permitted.cuts.push([index, ...spelling]);
        }
        tool = withoutPaths(tool, spellings);
      }
      if (tool.type === "namespace" && Array.isArray(tool.tools)) {
        const inner = this.#screenList(tool.tools, `${path}[${index}].tools`);
        if (inner.tools.length === 0 && inner.cuts.length > 0) permitted.cuts.push([index]);
        else {
          permitted.tools.push(inner.cuts.length === 0 ? tool : { ...tool, tools: inner.tools });
          for (const cut of inner.cuts) permitted.cuts.push([index, "tools", ...cut]);
        }
      } else if (this.#isPermitted(tool, `${path}[${index}]`)) permitted.tools.push(tool);
      else permitted.cuts.push([index]);
    }
    return permitted;
  }

  /** Tools whose members say what they are: those that are not permitted go, and tools without any member left. */
  #screenToolMembers(tools: readonly Json[], path: string): ToolList {
    const permitted: ToolList = { tools: [], cuts: [] };
    for (const [index, tool] of tools.entries()) {
      if (!isObject(tool)) {
        permitted.tools.push(tool);
        continue;
      }
      const removed = Object.keys(tool).filter((name) =>
        !this.#keepsMember(name, tool[name], `${path}[${index}].${name}`)
      );
      if (removed.length === 0) permitted.tools.push(tool);
      else if (removed.length === Object.keys(tool).length) permitted.cuts.push([index]);
      else {
        permitted.tools.push(withoutPaths(tool, removed.map((name) => [name])));
        for (const name of removed) permitted.cuts.push([index, name]);
      }
    }
    return permitted;
  }

  /** True if a member of a tool stays. */
  #keepsMember(name: string, value: Json | undefined, path: string): boolean {
    const extra = value === null ? undefined : extraOfToolMember(name, this.#table);
    if (extra === undefined) return true;
    const state = stateInTool(value);
    if (state !== undefined && !this.#permissions.vendorState) {
      throw this.#permissions.refusal({ asks: "vendor_state" }, path + state);
    }
    if (this.#permissions.takes(extra)) return true;
    this.#removed.add(name);
    this.#permissions.drop(extra, `tools.${name}`);
    return false;
  }

  /** True if a tool stays. */
  #isPermitted(tool: JsonObject, path: string): boolean {
    const extra = extraOfTool(tool, this.#table);
    if (extra === undefined) return true;
    const state = stateInTool(tool);
    // Without its store or files, the tool would do something else.
    if (state !== undefined && !this.#permissions.vendorState) {
      throw this.#permissions.refusal({ asks: "vendor_state" }, path + state);
    }
    if (this.#permissions.takes(extra, tool)) return true;
    this.#removed.add(String(tool.name ?? tool.type));
    this.#permissions.drop(extra, `tools.${String(tool.type)}`);
    return false;
  }

  /** Tools that are defined in a list of another kind. @returns whether any is left there */
  #screenEntries({ list, types }: { list: string; types: ReadonlySet<string> }): boolean {
    const entries = this.#value[list] as Json[];
    let left = false;
    let changed: Json[] | undefined;
    const cuts: JsonPath[] = [];
    for (const [index, entry] of entries.entries()) {
      const type = isObject(entry) && typeof entry.type === "string" ? entry.type : undefined;
      if (!isObject(entry) || type === undefined) {
        changed?.push(entry);
        continue;
      }
      if (!types.has(type) || !Array.isArray(entry.tools)) {
        changed?.push(entry);
        continue;
      }
      const { tools, cuts: inner } = this.#screenList(entry.tools, `${list}[${index}].tools`);
      left ||= tools.length > 0;
      if (inner.length === 0) {
        changed?.push(entry);
        continue;
      }
      changed ??= entries.slice(0, index);
      for (const cut of inner) cuts.push([index, "tools", ...cut]);
      changed.push({ ...entry, tools });
    }
    if (changed !== undefined) this.#edits.cut(list, changed, cuts);
    return left;
  }

  #screenChoice(choice: Json, isShortened: boolean): void {
    const isForced = choice === "required" || (isObject(choice) && choice.type === "any");
    if (isForced && !isShortened && this.#removed.size > 0) throw this.#forced();
    if (!isObject(choice)) return;
    const allowed = isObject(choice.allowed_tools) ? choice.allowed_tools : choice;
    if (choice.type === "allowed_tools") return this.#screenAllowed(allowed);
    if (choice.type === this.#table.namedChoice) {
      if (this.#removed.has(String(choice.name))) throw this.#forced();
      return;
    }
    if (OWN_CHOICES.has(String(choice.type))) return;
    const extra = extraOfTool(choice, this.#table);
    if (extra !== undefined && !this.#permissions.permits(extra)) throw this.#permissions.refusal(extra, "tool_choice");
  }

  /** Of the tools that a choice allows, those that are taken out go. Where none is left, none may be called. */
  #screenAllowed({ tools, mode }: JsonObject): void {
    if (!Array.isArray(tools)) return;
    const forbidden = tools.flatMap((tool, index) => {
      const extra = isObject(tool) ? extraOfTool(tool, this.#table) : undefined;
      return extra === undefined || this.#permissions.permits(extra) ? [] : [{ index, extra }];
    });
    const [first] = forbidden;
    if (first === undefined) return;
    const permitted = tools.filter((_, index) => !forbidden.some((tool) => tool.index === index));
    if (permitted.length === 0 && mode === "required") throw this.#permissions.refusal(first.extra, "tool_choice");
    const choice = this.#value.tool_choice;
    const inner = isObject(choice) && isObject(choice.allowed_tools) ? { allowed_tools: { mode, tools: permitted } } : {
      tools: permitted,
    };
    this.#edits.set("tool_choice", permitted.length === 0 || !isObject(choice) ? "none" : { ...choice, ...inner });
  }

  /** A choice among no tools says nothing; some upstreams refuse it. */
  #dropVoid(): void {
    for (const name of ["tool_choice", "parallel_tool_calls", "toolConfig"]) {
      if (this.#value[name] !== undefined) this.#edits.remove(name);
    }
  }

  #forced(): GatewayError {
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

/** Choices that name a tool of the client's, or none. */
const OWN_CHOICES: ReadonlySet<string> = new Set(["auto", "none", "any", "required", "tool", "function", "custom"]);

/** The error for a name that some servers take for another. */
export function spellingError(param: string, usual: string): GatewayError {
  return new GatewayError("invalid", `Cannot use ${param}: some servers treat it as ${usual}`, { param });
}
