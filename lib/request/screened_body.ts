/**
 * Screens a request for vendor features that cost more than tokens or use the vendor's stored state. Features that the
 * operator has not allowed are removed and named to the client, or refused if the answer would change without them. The
 * original body is screened once, before anything is reserved, so that relayed and translated requests have the same
 * rules.
 */
import type { Model } from "../catalog/model.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import type { ClientPermissions, Codec } from "../protocols/codec.ts";
import { asksForSomething, extraOfMember, namesState, OWN_NAMES, respelled, usualName } from "../protocols/extras.ts";
import { headOf, type JsonBody } from "../server/parse_body.ts";
import { BodyEdits } from "./body_edits.ts";
import { ExtraPermissions, type ExtrasCaller } from "./extra_permissions.ts";
import { ToolScreening } from "./screen_tools.ts";

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
