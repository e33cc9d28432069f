/**
 * What a request asks of its vendor beyond tokens: what the operator has not allowed is taken out and named, or refused
 * where the answer would be another without it. This happens once, on the body as it came, before anything is reserved:
 * relayed and translated requests are alike.
 */
import type { Caller } from "../access/caller.ts";
import { mayCall } from "../access/permissions.ts";
import type { Extras, HostedTool, Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import type { JsonBody } from "../server/router.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonPath,
  removePath,
  scanMembers,
  spliceMembers,
  writeJson,
} from "../json/mod.ts";
import type { Codec, Permits } from "../protocols/codec.ts";
import {
  asksForSomething,
  type Extra,
  extraOfMember,
  extraOfTool,
  namesState,
  OWN_NAMES,
  spellingsInTool,
  stateInTool,
  usualName,
} from "../protocols/extras.ts";
import { countOf } from "../protocols/members.ts";

/** A body without what it may not ask for. */
export interface Screened {
  body: JsonBody;
  /** Names of what was taken out. */
  dropped: readonly string[];
  /** What is left that costs more than tokens, once the body has been read. */
  extras(): Extras | undefined;
  /** The beta features of a request that may be passed on to a model. */
  betasFor(model: Pick<Model, "context_length">, header: string | null): Betas;
  permits: Permits;
}

/** Names of beta features, as they may go on. */
export interface Betas {
  /** The header's value; `null`: there is none. */
  value: string | null;
  /** What was taken out. */
  dropped: readonly string[];
}

/** The header that names beta features. */
export const BETAS = "anthropic-beta";

/** Whose request it is, as far as permissions matter. */
type Asker = Pick<Caller, "group" | "groupName" | "rules">;

/**
 * Takes out of a body what its caller may not ask for.
 * @throws {GatewayError} `invalid`, for state of the vendor's, for a choice that forces a tool that is taken out, and where
 * the client requires every parameter
 */
export function screenExtras(body: JsonBody, codec: Codec, caller: Asker): Screened {
  return new Screening(body, codec, caller).run();
}

/** A prompt with what its body asks for beyond tokens. */
export function withExtras(prompt: Prompt, { extras, permits: { vendorState } }: Screened): Prompt {
  const asked = extras();
  if (asked !== undefined) prompt.extras = asked;
  if (vendorState) prompt.vendorState = true;
  return prompt;
}

/** A tool list as it may stay, and what is cut out of its text. */
interface ToolList {
  tools: Json[];
  cuts: JsonPath[];
}

class Screening implements Permits {
  readonly #body: JsonBody;
  readonly #codec: Codec;
  readonly #caller: Asker;
  readonly #dropped: string[] = [];
  readonly #hosted: HostedTool[] = [];
  #remoteMcp = false;
  #tier: string | undefined;
  /** Names of tools that were taken out. */
  readonly #gone = new Set<string>();
  /** New values of members; `undefined` where one goes. */
  readonly #values: Record<string, Json | undefined> = {};
  readonly #texts: Record<string, string | undefined> = {};

  constructor(body: JsonBody, codec: Codec, caller: Asker) {
    this.#body = body;
    this.#codec = codec;
    this.#caller = caller;
  }

  get vendorState(): boolean {
    return this.#caller.group.vendor_state === true;
  }

  run(): Screened {
    const { value } = this.#body;
    const { members, nested } = this.#codec.extras;
    for (const name in value) {
      if (Object.hasOwn(members, name)) this.#screenMember(name);
      else this.#screenSpelling(name);
    }
    let left = this.#screenTools();
    if (nested !== undefined && Array.isArray(value[nested.list])) left = this.#screenEntries(nested) || left;
    if (value.tool_choice !== undefined && value.tool_choice !== null) this.#screenChoice(value.tool_choice, left);
    if (!left && this.#gone.size > 0) this.#dropVoid();
    return {
      body: this.#screened(),
      dropped: this.#dropped,
      extras: () => this.#extras(),
      betasFor: (model, header) => this.betasFor(model, header),
      permits: this,
    };
  }

  #screenMember(name: string): void {
    const rule = this.#codec.extras.members[name];
    const extra = rule && extraOfMember(this.#body.value[name], rule);
    if (extra === undefined || this.#takes(extra)) return;
    if (rule?.asks === "vendor_state") throw this.#refusal(extra, name, rule.code);
    this.#drop(extra, name);
    this.#remove(name);
  }

  #screenSpelling(name: string): void {
    const usual = usualName(name);
    if (usual === name) return;
    const { schema, extras } = this.#codec;
    if (!Object.hasOwn(schema.shape, usual) && !Object.hasOwn(extras.members, usual) && !ROUTING.has(usual)) return;
    this.#dropSpelling(name, usual);
    this.#remove(name);
  }

  /** @returns whether any tool is left */
  #screenTools(): boolean {
    const { tools } = this.#body.value;
    if (!Array.isArray(tools) || tools.length === 0) return false;
    const list = this.#screenList(tools, "tools");
    if (list.cuts.length === 0) return true;
    if (list.tools.length === 0) this.#remove("tools");
    else this.#cut("tools", list.tools, list.cuts);
    return list.tools.length > 0;
  }

  #screenList(tools: readonly Json[], path: string): ToolList {
    const left: ToolList = { tools: [], cuts: [] };
    for (const [index, entry] of tools.entries()) {
      let tool = entry;
      if (!isObject(tool)) {
        left.tools.push(tool);
        continue;
      }
      const spellings = spellingsInTool(tool);
      if (spellings.length > 0) {
        for (const spelling of spellings) {
          const name = String(spelling.at(-1));
          this.#dropSpelling(`tools.${name}`, usualName(name));
          left.cuts.push([index, ...spelling]);
        }
        tool = spellings.reduce<JsonObject>(without, tool);
      }
      if (tool.type === "namespace" && Array.isArray(tool.tools)) {
        const inner = this.#screenList(tool.tools, `${path}[${index}].tools`);
        if (inner.tools.length === 0 && inner.cuts.length > 0) left.cuts.push([index]);
        else {
          left.tools.push(inner.cuts.length === 0 ? tool : { ...tool, tools: inner.tools });
          for (const cut of inner.cuts) left.cuts.push([index, "tools", ...cut]);
        }
      } else if (this.#keeps(tool, `${path}[${index}]`)) left.tools.push(tool);
      else left.cuts.push([index]);
    }
    return left;
  }

  /** Whether a tool stays. */
  #keeps(tool: JsonObject, path: string): boolean {
    const extra = extraOfTool(tool, this.#codec.extras);
    if (extra === undefined) return true;
    const state = stateInTool(tool);
    // To search no store, or to run code without its files, is not what was asked for.
    if (state !== undefined && !this.vendorState) throw this.#refusal({ asks: "vendor_state" }, path + state);
    if (this.#takes(extra, tool)) return true;
    this.#gone.add(String(tool.name ?? tool.type));
    this.#drop(extra, `tools.${String(tool.type)}`);
    return false;
  }

  /** Tools that are defined in a list of another kind. @returns whether any is left there */
  #screenEntries({ list, types }: { list: string; types: ReadonlySet<string> }): boolean {
    const entries = this.#body.value[list] as Json[];
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
    if (changed !== undefined) this.#cut(list, changed, cuts);
    return left;
  }

  #screenChoice(choice: Json, left: boolean): void {
    const isForced = choice === "required" || (isObject(choice) && choice.type === "any");
    if (isForced && !left && this.#gone.size > 0) throw this.#forced();
    if (!isObject(choice)) return;
    const inside = isObject(choice.allowed_tools) ? choice.allowed_tools : choice;
    if (choice.type === "allowed_tools") return this.#screenAllowed(inside);
    if (choice.type === this.#codec.extras.namedChoice) {
      if (this.#gone.has(String(choice.name))) throw this.#forced();
      return;
    }
    if (OWN_CHOICES.has(String(choice.type))) return;
    const extra = extraOfTool(choice, this.#codec.extras);
    if (extra !== undefined && !this.#permits(extra)) throw this.#refusal(extra, "tool_choice");
  }

  /** Of the tools that a choice allows, those that are taken out go. Where none is left, none may be called. */
  #screenAllowed({ tools, mode }: JsonObject): void {
    if (!Array.isArray(tools)) return;
    const forbidden = tools.flatMap((tool, index) => {
      const extra = isObject(tool) ? extraOfTool(tool, this.#codec.extras) : undefined;
      return extra === undefined || this.#permits(extra) ? [] : [{ index, extra }];
    });
    const [first] = forbidden;
    if (first === undefined) return;
    const left = tools.filter((_, index) => !forbidden.some((tool) => tool.index === index));
    if (left.length === 0 && mode === "required") throw this.#refusal(first.extra, "tool_choice");
    const choice = this.#body.value.tool_choice;
    const inner = isObject(choice) && isObject(choice.allowed_tools) ? { allowed_tools: { mode, tools: left } } : {
      tools: left,
    };
    this.#set("tool_choice", left.length === 0 || !isObject(choice) ? "none" : { ...choice, ...inner });
  }

  /** A choice among no tools says nothing; some upstreams refuse it. */
  #dropVoid(): void {
    for (const name of ["tool_choice", "parallel_tool_calls"]) {
      if (this.#body.value[name] !== undefined) this.#remove(name);
    }
  }

  checkTool(tool: JsonObject, param: string): void {
    const [spelling] = spellingsInTool(tool);
    if (spelling !== undefined) {
      const name = String(spelling.at(-1));
      throw spellingError(`${param}.${name}`, usualName(name));
    }
    const extra = extraOfTool(tool, this.#codec.extras);
    if (extra === undefined) return;
    const state = stateInTool(tool);
    if (state !== undefined && !this.vendorState) throw this.#refusal({ asks: "vendor_state" }, param + state);
    if (!this.#takes(extra, tool)) throw this.#refusal(extra, param);
  }

  checkItem(item: JsonObject, param: string): void {
    const { nested, lookedUp = {}, toolReports } = this.#codec.extras;
    const type = String(item.type);
    const whole = Object.hasOwn(lookedUp, type) ? lookedUp[type] : undefined;
    if (whole !== undefined && !this.vendorState && asksForSomething(item.id) && !asksForSomething(item[whole])) {
      throw this.#refusal({ asks: "vendor_state" }, `${param}.id`);
    }
    const ownTools = nested?.types.has(type) || toolReports?.has(type);
    for (const name in item) {
      if (name !== "tools" || !ownTools) this.#checkInside(usualName(name), item[name], `${param}.${name}`);
    }
  }

  #checkInside(name: string, value: Json | undefined, path: string): void {
    if (value === undefined || (OWN_NAMES.has(name) && isObject(value))) return;
    if (!this.vendorState && namesState(name, value)) throw this.#refusal({ asks: "vendor_state" }, path);
    const { members } = this.#codec.extras;
    const rule = Object.hasOwn(members, name) ? members[name] : undefined;
    const extra = rule && extraOfMember(value, rule);
    if (extra !== undefined && !this.#takes(extra)) throw this.#refusal(extra, path);
    if (name === "tools" && Array.isArray(value)) {
      for (const [index, tool] of value.entries()) if (isObject(tool)) this.checkTool(tool, `${path}[${index}]`);
    }
    this.#checkAllInside(value, path);
  }

  #checkAllInside(value: Json, path: string): void {
    if (Array.isArray(value)) {
      for (const [index, entry] of value.entries()) this.#checkAllInside(entry, `${path}[${index}]`);
    } else if (isObject(value)) {
      for (const name in value) this.#checkInside(usualName(name), value[name], `${path}.${name}`);
    }
  }

  /** Notes what is asked for where it is allowed. */
  #takes(extra: Extra, value?: JsonObject): boolean {
    if (!this.#permits(extra)) return false;
    switch (extra.asks) {
      case "hosted_tool": {
        const maxCalls = countOf(value?.max_uses);
        this.#hosted.push({ name: extra.tool, ...(maxCalls !== undefined && { maxCalls }) });
        return true;
      }
      case "service_tier":
        // There is no price for two at once.
        if (this.#tier !== undefined && this.#tier !== extra.tier) return false;
        this.#tier = extra.tier;
        return true;
      case "remote_mcp":
        this.#remoteMcp = true;
        return true;
      default:
        return true;
    }
  }

  #permits(extra: Extra): boolean {
    const { group } = this.#caller;
    switch (extra.asks) {
      case "hosted_tool":
        return group.hosted_tools?.includes(extra.tool) === true &&
          (extra.tool !== IMAGES || mayCall(this.#caller, "images"));
      case "service_tier":
        return group.service_tiers?.includes(extra.tier) === true;
      case "remote_mcp":
        return group.remote_mcp === true;
      case "vendor_state":
        return this.vendorState;
      case "unpriced":
      case "long_context":
        return false;
    }
  }

  betasFor({ context_length }: Pick<Model, "context_length">, header: string | null): Betas {
    const { betas } = this.#codec.extras;
    if (betas === undefined || header === null) return { value: header, dropped: [] };
    const known = Object.entries(betas);
    const dropped: string[] = [];
    const left = header.split(",").map((name) => name.trim()).filter((name) => {
      const [, extra] = known.find(([start]) => name.toLowerCase().startsWith(start)) ?? [];
      const mayPass = extra === undefined ||
        (extra.asks === "long_context" ? context_length > extra.over : this.#permits(extra));
      if (!mayPass) dropped.push(`${BETAS}.${name}`);
      return mayPass;
    });
    if (dropped.length === 0) return { value: header, dropped };
    return { value: left.length === 0 ? null : left.join(","), dropped };
  }

  #drop(extra: Extra, name: string): void {
    const { provider } = this.#body.value;
    if (isObject(provider) && provider.require_parameters === true) throw this.#refusal(extra, name);
    if (!this.#dropped.includes(name)) this.#dropped.push(name);
  }

  #dropSpelling(name: string, usual: string): void {
    const { provider } = this.#body.value;
    if (isObject(provider) && provider.require_parameters === true) {
      throw spellingError(name, usual);
    }
    if (!this.#dropped.includes(name)) this.#dropped.push(name);
  }

  #forced(): GatewayError {
    const [tool = ""] = this.#gone;
    return new GatewayError(
      "invalid",
      `Cannot use tool_choice: it wants the hosted tool "${tool}", which group "${this.#caller.groupName}" may not use. ` +
        `The operator can allow it in groups.${this.#caller.groupName}.hosted_tools`,
      { param: "tool_choice" },
    );
  }

  #refusal(extra: Extra, member: string, code?: string): GatewayError {
    const { groupName, group } = this.#caller;
    const { what, setting } = wordsOf(extra);
    const isImages = extra.asks === "hosted_tool" && group.hosted_tools?.includes(extra.tool) === true;
    const allow = setting === undefined
      ? ""
      : `. The operator can allow it in groups.${groupName}.${isImages ? "endpoints (images)" : setting}`;
    return new GatewayError("invalid", `Cannot use ${member}: group "${groupName}" may not use ${what}${allow}`, {
      param: member,
      ...(code !== undefined && { code }),
    });
  }

  #remove(name: string): void {
    this.#values[name] = undefined;
    this.#texts[name] = undefined;
  }

  #set(name: string, value: Json): void {
    this.#values[name] = value;
    this.#texts[name] = writeJson(value);
  }

  /** A list with other contents, whose text keeps the client's spelling. */
  #cut(name: string, value: Json[], cuts: readonly JsonPath[]): void {
    const { text, members } = this.#body;
    const member = members.find((member) => member.name === name);
    this.#values[name] = value;
    this.#texts[name] = member === undefined
      ? writeJson(value)
      : cuts.toReversed().reduce(removePath, text.slice(member.start, member.end));
  }

  #screened(): JsonBody {
    if (Object.keys(this.#texts).length === 0) return this.#body;
    const value = Object.fromEntries(
      Object.entries({ ...this.#body.value, ...this.#values }).filter(([, value]) => value !== undefined),
    );
    const { isAscii } = this.#body;
    return { ...scanMembers(spliceMembers(this.#body, this.#texts)), value, isAscii };
  }

  #extras(): Extras | undefined {
    if (this.#hosted.length === 0 && !this.#remoteMcp && this.#tier === undefined) return undefined;
    const maxCalls = countOf(this.#body.value.max_tool_calls);
    return {
      hostedTools: this.#hosted,
      remoteMcp: this.#remoteMcp,
      ...(maxCalls !== undefined && { maxCalls }),
      ...(this.#tier !== undefined && { tier: this.#tier }),
    };
  }
}

/** Members that choose a model, in one protocol or another. */
const ROUTING: ReadonlySet<string> = new Set(["model", "models", "provider", "fallbacks", "tools"]);

function spellingError(param: string, usual: string): GatewayError {
  return new GatewayError("invalid", `Cannot use ${param}: some servers take it for ${usual}`, { param });
}

/** A value without what is at a path. */
function without(value: JsonObject, [name, ...rest]: JsonPath): JsonObject {
  const copy = Array.isArray(value) ? [...value] as unknown as JsonObject : { ...value };
  if (rest.length === 0) delete copy[String(name)];
  else copy[String(name)] = without(copy[String(name)] as JsonObject, rest);
  return copy;
}

/** The hosted tool that makes images: its group needs the endpoint that makes them, too. */
const IMAGES = "image_generation";

/** Choices that name a tool of the client's, or none. */
const OWN_CHOICES: ReadonlySet<string> = new Set(["auto", "none", "any", "required", "tool", "function", "custom"]);

function wordsOf(extra: Extra): { what: string; setting?: string } {
  switch (extra.asks) {
    case "hosted_tool":
      return { what: `the hosted tool "${extra.tool}"`, setting: "hosted_tools" };
    case "service_tier":
      return { what: `the service tier "${extra.tier}"`, setting: "service_tiers" };
    case "remote_mcp":
      return { what: "remote MCP servers", setting: "remote_mcp" };
    case "vendor_state":
      return { what: "state that the vendor keeps", setting: "vendor_state" };
    case "unpriced":
    case "long_context":
      return { what: "it, as no answer tells what it costs" };
  }
}
