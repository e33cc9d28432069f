/**
 * Screens a request for vendor features that cost more than tokens or use the vendor's stored state. Features that the
 * operator has not allowed are removed and named to the client, or refused if the answer would change without them. The
 * original body is screened once, before anything is reserved, so that relayed and translated requests have the same
 * rules.
 */
import type { HostedTool, Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { headOf, type JsonBody } from "../server/body.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonPath,
  removePaths,
  scanMembers,
  spliceMembers,
  withoutPaths,
  writeJson,
} from "../json/mod.ts";
import type { ClientPermissions, Codec } from "../protocols/codec.ts";
import {
  asksForSomething,
  type Extra,
  extraOfMember,
  type ExtrasTable,
  namesState,
  OWN_NAMES,
  respelled,
  usualName,
} from "../protocols/extras.ts";
import { spellingError, ToolScreening } from "./screen_tools.ts";
import { type Caller, mayCall } from "../access/permissions.ts";
import { GatewayError } from "../errors.ts";
import { countOf } from "../protocols/members.ts";
import { withSettings } from "../protocols/plain_contents.ts";

/** The request header that names beta features. */
export const BETAS = "anthropic-beta";

/** A request body without the features that the caller may not use. */
export class ScreenedBody implements ClientPermissions {
  body: JsonBody;
  readonly vendorState: boolean;
  readonly permissions: ExtraPermissions;
  /** Names of removed members and tools. */
  readonly dropped: readonly string[];
  /** The members that are screened. Contents that a scan recognized are not among them: they need no screening. */
  readonly #head: JsonObject;
  readonly #codec: Codec;
  #lazyEdits: BodyEdits | undefined;
  #lazyTools: ToolScreening | undefined;

  /**
   * Removes from a body the features that its caller may not use.
   * @throws {GatewayError} `invalid` for vendor state, for a tool choice that forces a removed tool, and for every
   * feature that would be removed if the client requires all parameters
   */
  constructor(body: JsonBody, codec: Codec, caller: ExtrasCaller) {
    this.body = body;
    this.#head = headOf(body);
    this.#codec = codec;
    this.permissions = new ExtraPermissions(this.#head, { caller, callLimit: codec.extras.callLimit });
    this.vendorState = this.permissions.vendorState;
    this.dropped = this.permissions.dropped;
    const { members, nested } = codec.extras;
    const { tools, tool_choice: choice } = this.#head;
    for (const name in this.#head) {
      if (Object.hasOwn(members, name)) this.#screenMember(name);
      else if (usualName(name) !== name) this.#screenSpelling(name);
    }
    const hasTools = Array.isArray(tools) || (choice !== undefined && choice !== null);
    if (hasTools || (nested !== undefined && Array.isArray(this.#head[nested.list]))) this.#tools.screen();
    if (this.#lazyEdits !== undefined) this.body = this.#lazyEdits.apply();
  }

  /** Created when needed: most bodies need no edit. */
  get #edits(): BodyEdits {
    return this.#lazyEdits ??= new BodyEdits(this.body);
  }

  /** Created when needed: most bodies have no tools to screen. */
  get #tools(): ToolScreening {
    return this.#lazyTools ??= new ToolScreening({
      value: this.#head,
      scanned: this.body.scanned?.sizes.entries.get("tools") ?? 0,
      table: this.#codec.extras,
      permissions: this.permissions,
      edits: this.#edits,
    });
  }

  checkTool(tool: JsonObject, param: string): void {
    this.#tools.checkTool(tool, param);
  }

  #screenMember(name: string): void {
    const rule = this.#codec.extras.members[name];
    const extra = rule && extraOfMember(this.#head[name], rule);
    if (extra === undefined || this.permissions.takes(extra, { member: name })) return;
    if (rule?.feature === "vendor_state") throw this.permissions.refusal(extra, name, rule.code);
    this.permissions.drop(extra, name);
    this.#edits.remove(name);
  }

  #screenSpelling(name: string): void {
    const { schema, extras } = this.#codec;
    const usual = respelled(name, (known) => {
      return Object.hasOwn(schema.shape, known) || Object.hasOwn(extras.members, known) || ROUTING_MEMBERS.has(known);
    });
    if (usual === undefined) return;
    this.permissions.dropSpelling(name, usual);
    this.#edits.remove(name);
  }

  checkItem(item: JsonObject, param: string): void {
    const { nested, lookedUp = {}, toolReports } = this.#codec.extras;
    const type = String(item.type);
    const contentMember = Object.hasOwn(lookedUp, type) ? lookedUp[type] : undefined;
    const isLookedUp = contentMember !== undefined && asksForSomething(item.id) &&
      !asksForSomething(item[contentMember]);
    if (isLookedUp && !this.vendorState) {
      throw this.permissions.refusal({ feature: "vendor_state" }, `${param}.id`);
    }
    const ownTools = nested?.types.has(type) || toolReports?.has(type);
    for (const name in item) {
      if (name !== "tools" || !ownTools) this.#checkInside(usualName(name), item[name], `${param}.${name}`);
    }
  }

  #checkInside(name: string, value: Json | undefined, path: string): void {
    if (value === undefined || (OWN_NAMES.has(name) && isObject(value))) return;
    if (!this.vendorState && namesState(name, value)) throw this.permissions.refusal({ feature: "vendor_state" }, path);
    const { members } = this.#codec.extras;
    const rule = Object.hasOwn(members, name) ? members[name] : undefined;
    const extra = rule && extraOfMember(value, rule);
    // Settings of the server are members of the body.
    const needsPermission = extra !== undefined && extra.feature !== "server";
    if (needsPermission && !this.permissions.takes(extra)) throw this.permissions.refusal(extra, path);
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

  /**
   * Removes the beta features that may not be passed on to a model.
   * @param header the client's header
   * @returns the header for the upstream, `null` if it gets none, and each removed feature as `anthropic-beta.NAME`
   */
  betasFor(
    { context_length }: Pick<Model, "context_length">,
    header: string,
  ): { value: string | null; dropped: readonly string[] } {
    const { betas } = this.#codec.extras;
    if (betas === undefined) return { value: header, dropped: [] };
    const prefixes = Object.entries(betas);
    const dropped: string[] = [];
    const permitted = header.split(",").map((name) => name.trim()).filter((name) => {
      const [, extra] = prefixes.find(([start]) => name.toLowerCase().startsWith(start)) ?? [];
      const mayPass = extra === undefined ||
        (extra.feature === "long_context" ? context_length > extra.over : this.permissions.permits(extra));
      if (!mayPass) dropped.push(`${BETAS}.${name}`);
      return mayPass;
    });
    if (dropped.length === 0) return { value: header, dropped };
    return { value: permitted.length === 0 ? null : permitted.join(","), dropped };
  }
}

/** Members that choose a model or its tools in any protocol. Misspellings of them are removed in every protocol. */
const ROUTING_MEMBERS: ReadonlySet<string> = new Set(["model", "models", "provider", "fallbacks", "tools"]);

/** The parts of a caller that decide what it may use. */
export type ExtrasCaller = Pick<Caller, "group" | "groupName" | "rules">;

/**
 * Maximum number of members and tools that are removed from one body. Removing 72,000 blocked the event loop for 130
 * ms.
 */
const MAX_REMOVALS = 1_000;

/** Decides which extras of one request are permitted, and records those that are granted and those that are removed. */
export class ExtraPermissions {
  readonly #value: JsonObject;
  readonly #caller: ExtrasCaller;
  readonly #callLimit: ExtrasTable["callLimit"];
  readonly groupName: string;
  /** True if the group may use files and conversations that the vendor keeps. */
  readonly vendorState: boolean;
  /** Names of removed members and tools. */
  readonly dropped: string[] = [];
  #removals = 0;
  readonly #hosted: HostedTool[] = [];
  #remoteMcp = false;
  #tier: string | undefined;
  #tierParameter: string | undefined;

  constructor(
    value: JsonObject,
    { caller, callLimit }: { caller: ExtrasCaller; callLimit: ExtrasTable["callLimit"] },
  ) {
    this.#value = value;
    this.#caller = caller;
    this.#callLimit = callLimit;
    this.groupName = caller.groupName;
    this.vendorState = caller.group.vendor_state === true;
  }

  /**
   * Records a requested feature if it is permitted.
   * @param source the tool or the member of the body that asks for it
   * @returns whether it is permitted
   */
  takes(extra: Extra, { tool, member }: { tool?: JsonObject; member?: string } = {}): boolean {
    if (!this.permits(extra)) return false;
    switch (extra.feature) {
      case "hosted_tool": {
        const maxCalls = this.#callLimit === "max_uses" ? countOf(tool?.max_uses) : undefined;
        this.#hosted.push({ name: extra.tool, ...(maxCalls !== undefined && { maxCalls }) });
        return true;
      }
      case "service_tier":
        // There is no price for a request with two service tiers.
        if (this.#tier !== undefined && this.#tier !== extra.tier) return false;
        this.#tier = extra.tier;
        this.#tierParameter = member;
        return true;
      case "remote_mcp":
        this.#remoteMcp = true;
        return true;
      default:
        return true;
    }
  }

  /** Returns whether the caller may use the feature. */
  permits(extra: Extra): boolean {
    const { group } = this.#caller;
    switch (extra.feature) {
      case "hosted_tool":
        return group.hosted_tools?.includes(extra.tool) === true &&
          (extra.tool !== IMAGE_TOOL || mayCall(this.#caller, "images"));
      case "service_tier":
        return group.service_tiers?.includes(extra.tier) === true;
      case "remote_mcp":
        return group.remote_mcp === true;
      case "vendor_state":
        return this.vendorState;
      case "unpriced":
      case "server":
      case "long_context":
        return false;
    }
  }

  /** Records that a feature is removed. @throws {GatewayError} `invalid` if the client requires all, or for too many */
  drop(extra: Extra, name: string): void {
    this.#remove(name, () => this.refusal(extra, name));
  }

  /** Records that a member with an unusual spelling is removed. @throws {GatewayError} as `drop` */
  dropSpelling(name: string, usual: string): void {
    this.#remove(name, () => spellingError(name, usual));
  }

  #remove(name: string, refusal: () => GatewayError): void {
    const { provider } = this.#value;
    if (isObject(provider) && provider.require_parameters === true) throw refusal();
    if (++this.#removals > MAX_REMOVALS) {
      throw new GatewayError(
        "invalid",
        `Cannot use ${name}: more than ${MAX_REMOVALS} members and tools like it would have to be removed`,
        { param: name },
      );
    }
    if (!this.dropped.includes(name)) this.dropped.push(name);
  }

  /** Returns the error for a feature that is not permitted and cannot be removed. */
  refusal(extra: Extra, member: string, code?: string): GatewayError {
    const { groupName } = this;
    const { group } = this.#caller;
    const { what, setting } = wordsOf(extra);
    const lacksImages = extra.feature === "hosted_tool" && group.hosted_tools?.includes(extra.tool) === true;
    const allow = setting === undefined
      ? ""
      : `. The operator can allow it in groups.${groupName}.${lacksImages ? "endpoints (images)" : setting}`;
    return new GatewayError("invalid", `Cannot use ${member}: group "${groupName}" may not use ${what}${allow}`, {
      param: member,
      ...(code !== undefined && { code }),
    });
  }

  /** Returns the prompt with the granted features. */
  withGranted(prompt: Prompt): Prompt {
    const vendorState = this.vendorState ? { vendorState: true } : undefined;
    if (this.#hosted.length === 0 && !this.#remoteMcp && this.#tier === undefined) {
      return vendorState === undefined ? prompt : withSettings(prompt, vendorState);
    }
    // The vendor honours the call limit only in its own protocol.
    const maxCalls = this.#callLimit === "max_tool_calls" ? countOf(this.#value.max_tool_calls) : undefined;
    const extras = {
      hostedTools: this.#hosted,
      remoteMcp: this.#remoteMcp,
      ...(maxCalls !== undefined && { maxCalls }),
      ...(this.#tier !== undefined && { tier: this.#tier }),
      ...(this.#tierParameter !== undefined && { tierParameter: this.#tierParameter }),
    };
    return withSettings(prompt, { ...vendorState, extras });
  }
}

/** The hosted tool that makes images. A group also needs permission for the image endpoints to use it. */
const IMAGE_TOOL = "image_generation";

function wordsOf(extra: Extra): { what: string; setting?: string } {
  switch (extra.feature) {
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
      return { what: "it, as its cost would be unknown" };
    case "server":
      return { what: "settings of the server" };
  }
}

/** Collects edits of a body, and applies them to its text and its value. */
export class BodyEdits {
  readonly #body: JsonBody;
  /** New values of members; `undefined` for a member that is removed. */
  readonly #values: Record<string, Json | undefined> = {};
  /** New JSON texts of the same members. */
  readonly #texts: Record<string, string | undefined> = {};

  constructor(body: JsonBody) {
    this.#body = body;
  }

  remove(name: string): void {
    this.#values[name] = undefined;
    this.#texts[name] = undefined;
  }

  set(name: string, value: Json): void {
    this.#values[name] = value;
    this.#texts[name] = writeJson(value);
  }

  /** Removes values inside a member. The text of everything else in it stays as the client wrote it. */
  cut(name: string, cuts: readonly JsonPath[]): void {
    const { text, members, value } = this.#body;
    const { start, end } = members.find((member) => member.name === name) ?? { start: 0, end: 0 };
    this.#values[name] = withoutPaths({ [name]: value[name] }, cuts.map((cut) => [name, ...cut]))[name];
    this.#texts[name] = removePaths(text.slice(start, end), cuts);
  }

  /** Returns the edited body; the same body if there are no edits. */
  apply(): JsonBody {
    if (Object.keys(this.#texts).length === 0) return this.#body;
    const value = Object.fromEntries(
      Object.entries({ ...this.#body.value, ...this.#values }).filter(([, value]) => value !== undefined),
    );
    return { ...scanMembers(spliceMembers(this.#body, this.#texts)), value };
  }
}
