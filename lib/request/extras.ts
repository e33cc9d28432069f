/**
 * Screens the vendor features of a request beyond tokens: features that the operator has not allowed are removed and named,
 * or refused if the answer would change without them. The original body is screened once, before anything is reserved, so
 * relayed and translated requests have the same rules.
 */
import type { Extras } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { headOf, type JsonBody } from "../server/router.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import type { Codec, Permits } from "../protocols/codec.ts";
import { asksForSomething, extraOfMember, namesState, OWN_NAMES, usualName } from "../protocols/extras.ts";
import { BodyEdits } from "./body_edits.ts";
import { ExtraPermissions, type ExtrasCaller } from "./extra_permissions.ts";
import { ToolScreening } from "./screen_tools.ts";

/** A body without the features that its key may not use. */
export interface Screened extends Permits {
  readonly body: JsonBody;
  /** Names of removed members and tools. */
  readonly dropped: readonly string[];
  /** Features left in the body that cost more than tokens; absent: none. */
  extras(): Extras | undefined;
  /** The beta features of a request that may be passed on to a model. `header`: those that the client names. */
  betasFor(model: Pick<Model, "context_length">, header: string): Betas;
}

/** Names of beta features, as they may go on. */
export interface Betas {
  /** The header's value; `null`: there is none. */
  value: string | null;
  /** Dropped members. */
  dropped: readonly string[];
}

/** The header that names beta features. */
export const BETAS = "anthropic-beta";

/**
 * Removes from a body what its caller may not use.
 * @throws {GatewayError} `invalid` for vendor state, for a choice that forces a removed tool, and if the client requires
 * every parameter
 */
export function screenExtras(body: JsonBody, codec: Codec, caller: ExtrasCaller): Screened {
  const screening = new Screening(body, codec, caller);
  screening.run();
  return screening;
}

class Screening implements Screened {
  body: JsonBody;
  readonly dropped: readonly string[];
  readonly vendorState: boolean;
  /** The screened members. Contents that a scan recognized need no screening. */
  readonly #head: JsonObject;
  readonly #codec: Codec;
  readonly #permissions: ExtraPermissions;
  #lazyEdits: BodyEdits | undefined;
  #lazyTools: ToolScreening | undefined;

  constructor(body: JsonBody, codec: Codec, caller: ExtrasCaller) {
    this.body = body;
    this.#head = headOf(body);
    this.#codec = codec;
    this.#permissions = new ExtraPermissions(this.#head, caller);
    this.dropped = this.#permissions.dropped;
    this.vendorState = this.#permissions.vendorState;
  }

  run(): void {
    const { members, nested } = this.#codec.extras;
    const { tools, tool_choice: choice } = this.#head;
    for (const name in this.#head) {
      if (Object.hasOwn(members, name)) this.#screenMember(name);
      else if (usualName(name) !== name) this.#screenSpelling(name);
    }
    const hasTools = Array.isArray(tools) || (choice !== undefined && choice !== null);
    if (hasTools || (nested !== undefined && Array.isArray(this.#head[nested.list]))) this.#tools.screen();
    if (this.#lazyEdits !== undefined) this.body = this.#lazyEdits.apply();
  }

  extras(): Extras | undefined {
    return this.#permissions.extras();
  }

  /** Most bodies need no edit, and most have no tools to screen: both are made when they are needed. */
  get #edits(): BodyEdits {
    return this.#lazyEdits ??= new BodyEdits(this.body);
  }

  get #tools(): ToolScreening {
    return this.#lazyTools ??= new ToolScreening({
      value: this.#head,
      scanned: this.body.scanned?.sizes.entries.get("tools") ?? 0,
      table: this.#codec.extras,
      permissions: this.#permissions,
      edits: this.#edits,
    });
  }

  checkTool(tool: JsonObject, param: string): void {
    this.#tools.checkTool(tool, param);
  }

  #screenMember(name: string): void {
    const rule = this.#codec.extras.members[name];
    const extra = rule && extraOfMember(this.#head[name], rule);
    if (extra === undefined || this.#permissions.takes(extra)) return;
    if (rule?.asks === "vendor_state") throw this.#permissions.refusal(extra, name, rule.code);
    this.#permissions.drop(extra, name);
    this.#edits.remove(name);
  }

  #screenSpelling(name: string): void {
    const usual = usualName(name);
    const { schema, extras } = this.#codec;
    if (!Object.hasOwn(schema.shape, usual) && !Object.hasOwn(extras.members, usual) && !ROUTING.has(usual)) return;
    this.#permissions.dropSpelling(name, usual);
    this.#edits.remove(name);
  }

  checkItem(item: JsonObject, param: string): void {
    const { nested, lookedUp = {}, toolReports } = this.#codec.extras;
    const type = String(item.type);
    const whole = Object.hasOwn(lookedUp, type) ? lookedUp[type] : undefined;
    if (whole !== undefined && !this.vendorState && asksForSomething(item.id) && !asksForSomething(item[whole])) {
      throw this.#permissions.refusal({ asks: "vendor_state" }, `${param}.id`);
    }
    const ownTools = nested?.types.has(type) || toolReports?.has(type);
    for (const name in item) {
      if (name !== "tools" || !ownTools) this.#checkInside(usualName(name), item[name], `${param}.${name}`);
    }
  }

  #checkInside(name: string, value: Json | undefined, path: string): void {
    if (value === undefined || (OWN_NAMES.has(name) && isObject(value))) return;
    if (!this.vendorState && namesState(name, value)) throw this.#permissions.refusal({ asks: "vendor_state" }, path);
    const { members } = this.#codec.extras;
    const rule = Object.hasOwn(members, name) ? members[name] : undefined;
    const extra = rule && extraOfMember(value, rule);
    if (extra !== undefined && !this.#permissions.takes(extra)) throw this.#permissions.refusal(extra, path);
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

  betasFor({ context_length }: Pick<Model, "context_length">, header: string): Betas {
    const { betas } = this.#codec.extras;
    if (betas === undefined) return { value: header, dropped: [] };
    const known = Object.entries(betas);
    const dropped: string[] = [];
    const left = header.split(",").map((name) => name.trim()).filter((name) => {
      const [, extra] = known.find(([start]) => name.toLowerCase().startsWith(start)) ?? [];
      const mayPass = extra === undefined ||
        (extra.asks === "long_context" ? context_length > extra.over : this.#permissions.permits(extra));
      if (!mayPass) dropped.push(`${BETAS}.${name}`);
      return mayPass;
    });
    if (dropped.length === 0) return { value: header, dropped };
    return { value: left.length === 0 ? null : left.join(","), dropped };
  }
}

/** Members that choose a model, in one protocol or another. */
const ROUTING: ReadonlySet<string> = new Set(["model", "models", "provider", "fallbacks", "tools"]);
