/** Permissions of a key for vendor features besides tokens, and the features that a request uses. */
import { type Caller, mayCall } from "../access/permissions.ts";
import type { Extras, HostedTool } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { isObject, type JsonObject } from "../json/mod.ts";
import type { Extra } from "../protocols/extras.ts";
import { countOf } from "../protocols/members.ts";

/** The caller of a request, as far as its permissions matter. */
export type ExtrasCaller = Pick<Caller, "group" | "groupName" | "rules">;

/** Grants the extras of one request, and notes them: those that are granted, and those that are taken out of the body. */
export class ExtraPermissions {
  readonly #value: JsonObject;
  readonly #caller: ExtrasCaller;
  readonly groupName: string;
  /** True if the group may use files and conversations that the vendor keeps. */
  readonly vendorState: boolean;
  /** Names of removed members and tools. */
  readonly dropped: string[] = [];
  readonly #hosted: HostedTool[] = [];
  #remoteMcp = false;
  #tier: string | undefined;

  constructor(value: JsonObject, caller: ExtrasCaller) {
    this.#value = value;
    this.#caller = caller;
    this.groupName = caller.groupName;
    this.vendorState = caller.group.vendor_state === true;
  }

  /** Records a requested feature if it is permitted. */
  takes(extra: Extra, value?: JsonObject): boolean {
    if (!this.permits(extra)) return false;
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

  /** True if the key may use the feature. */
  permits(extra: Extra): boolean {
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

  /** Notes that it is taken out. @throws {GatewayError} `invalid` where the client requires every parameter */
  drop(extra: Extra, name: string): void {
    const { provider } = this.#value;
    if (isObject(provider) && provider.require_parameters === true) throw this.refusal(extra, name);
    if (!this.dropped.includes(name)) this.dropped.push(name);
  }

  /** Notes that a misspelled name is taken out. @throws {GatewayError} as `drop` */
  dropSpelling(name: string, usual: string): void {
    const { provider } = this.#value;
    if (isObject(provider) && provider.require_parameters === true) {
      throw spellingError(name, usual);
    }
    if (!this.dropped.includes(name)) this.dropped.push(name);
  }

  /** The error for a feature that is not permitted and cannot be dropped. */
  refusal(extra: Extra, member: string, code?: string): GatewayError {
    const { groupName } = this;
    const { group } = this.#caller;
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

  /** Granted features; absent: none. */
  extras(): Extras | undefined {
    if (this.#hosted.length === 0 && !this.#remoteMcp && this.#tier === undefined) return undefined;
    const maxCalls = countOf(this.#value.max_tool_calls);
    return {
      hostedTools: this.#hosted,
      remoteMcp: this.#remoteMcp,
      ...(maxCalls !== undefined && { maxCalls }),
      ...(this.#tier !== undefined && { tier: this.#tier }),
    };
  }
}

/** The hosted tool that makes images: its group needs the endpoint that makes them, too. */
const IMAGES = "image_generation";

/** The error for a name that some servers take for another. */
export function spellingError(param: string, usual: string): GatewayError {
  return new GatewayError("invalid", `Cannot use ${param}: some servers take it for ${usual}`, { param });
}

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
