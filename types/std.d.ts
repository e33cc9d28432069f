// The npm build of the standard library ships no types. These are the signatures of what we import;
// drop this file from `compilerOptions.types` when the imports are mapped to a typed registry.

declare module "@std/assert" {
  export class AssertionError extends Error {}
  export function assert(value: unknown, message?: string): asserts value;
  export function assertEquals<T>(actual: T, expected: T, message?: string): void;
  export function assertNotEquals<T>(actual: T, expected: T, message?: string): void;
  export function assertStrictEquals<T>(actual: unknown, expected: T, message?: string): asserts actual is T;
  export function assertExists<T>(actual: T, message?: string): asserts actual is NonNullable<T>;
  export function assertStringIncludes(actual: string, expected: string, message?: string): void;
  export function assertMatch(actual: string, expected: RegExp, message?: string): void;
  export function assertNotMatch(actual: string, expected: RegExp, message?: string): void;
  export function assertGreater<T>(actual: T, expected: T, message?: string): void;
  export function assertGreaterOrEqual<T>(actual: T, expected: T, message?: string): void;
  export function assertLess<T>(actual: T, expected: T, message?: string): void;
  export function assertLessOrEqual<T>(actual: T, expected: T, message?: string): void;
  // deno-lint-ignore no-explicit-any
  export function assertInstanceOf<T extends abstract new (...args: any[]) => any>(
    actual: unknown,
    type: T,
    message?: string,
  ): asserts actual is InstanceType<T>;
  export function assertObjectMatch(actual: object, expected: object, message?: string): void;
  export function assertArrayIncludes<T>(actual: ArrayLike<T>, expected: ArrayLike<T>, message?: string): void;
  export function assertThrows<E extends Error = Error>(
    fn: () => unknown,
    // deno-lint-ignore no-explicit-any
    type: abstract new (...args: any[]) => E,
    includes?: string,
    message?: string,
  ): E;
  export function assertThrows(fn: () => unknown, message?: string): unknown;
  export function assertRejects<E extends Error = Error>(
    fn: () => PromiseLike<unknown>,
    // deno-lint-ignore no-explicit-any
    type: abstract new (...args: any[]) => E,
    includes?: string,
    message?: string,
  ): Promise<E>;
  export function assertRejects(fn: () => PromiseLike<unknown>, message?: string): Promise<unknown>;
  export function fail(message?: string): never;
  export function unreachable(reason?: string): never;
}

declare module "@std/http/etag" {
  export function eTag(entity: string | Uint8Array, options?: { weak?: boolean }): Promise<string | undefined>;
  export function ifNoneMatch(value: string | null, etag: string | undefined): boolean;
}

declare module "@std/http/status" {
  export const STATUS_TEXT: Readonly<Record<number, string>>;
  export const STATUS_CODE: Readonly<Record<string, number>>;
}

declare module "@std/streams" {
  export function toText(stream: ReadableStream<string | Uint8Array>): Promise<string>;
  export function toBytes(stream: ReadableStream<Uint8Array>): Promise<Uint8Array>;
  export class TextLineStream extends TransformStream<string, string> {
    constructor(options?: { allowCR?: boolean });
  }
}
