/**
 * Facts about the licences of an executable that its packages do not declare: bundled code, choices, and omitted files.
 */

/** Licences that a release may contain, as SPDX identifiers. None of them affects other parts. */
export const ALLOWED: readonly string[] = [
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "IJG",
  "ISC",
  "MIT",
  "Unlicense",
  "Zlib",
  "blessing",
];

/** The chosen licence, by the declared SPDX expression that offers several. */
export const CHOSEN: Readonly<Record<string, string>> = { "(AGPL-3.0-or-later OR MIT)": "MIT" };

/** Third-party code inside a package, or inside the runtime. */
export interface BundledCode {
  name: string;
  /** Name of the package, without its version. */
  inside: string;
  /** Its location in the package, and its origin. */
  where: string;
  license: string;
  copyright: string;
  /**
   * Words of its notice. A file that mentions a copyright must contain one of them; else a piece is missing in this
   * list.
   */
  marks?: readonly string[];
}

/** Pieces of packages that have an author or a licence of their own. */
export const PIECES: readonly BundledCode[] = [
  {
    name: "o200k_base and the other rank tables",
    inside: "js-tiktoken",
    where: "dist/ranks, the vocabularies of https://github.com/openai/tiktoken",
    license: "MIT",
    copyright: "Copyright (c) 2022 OpenAI, Shantanu Jain",
  },
  {
    name: "quickselect",
    inside: "d3-array",
    where: "quickselect() in dist/, from https://github.com/mourner/quickselect",
    license: "ISC",
    copyright: "Copyright 2018 Vladimir Agafonkin",
    marks: ["Vladimir Agafonkin"],
  },
  {
    name: "js-yaml",
    inside: "deno-std",
    where: "yaml, from https://github.com/nodeca/js-yaml",
    license: "MIT",
    copyright: "Copyright 2011-2015 by Vitaly Puzrin",
    marks: ["Vitaly Puzrin"],
  },
  {
    name: "path-browserify",
    inside: "deno-std",
    where: "path, from https://github.com/browserify/path-browserify",
    license: "MIT",
    copyright: "Copyright the Browserify authors",
    marks: ["Browserify authors"],
  },
  {
    name: "negotiator",
    inside: "deno-std",
    where: "http/_negotiation, from https://github.com/jshttp/negotiator",
    license: "MIT",
    copyright:
      "Copyright (c) 2012-2014 Federico Romero, Copyright (c) 2012-2014 Isaac Z. Schlueter, Copyright (c) 2014-2015 Douglas Christopher Wilson",
    marks: ["Federico Romero", "2012-2014 Isaac Z. Schlueter", "Douglas Christopher Wilson"],
  },
  {
    name: "ulid",
    inside: "deno-std",
    where: "ulid, from https://github.com/ulid/javascript",
    license: "MIT",
    copyright: "Copyright 2017 Alizain Feerasta, Copyright 2023 Yoshiya Hinosawa",
    marks: ["Alizain Feerasta", "2023 Yoshiya Hinosawa"],
  },
  {
    name: "pretty-bytes",
    inside: "deno-std",
    where: "fmt/bytes.js, from https://github.com/sindresorhus/pretty-bytes",
    license: "MIT",
    copyright: "Copyright 2014-2021 Sindre Sorhus, Copyright 2021 Yoshiya Hinosawa, Copyright 2021 Giuseppe Eletto",
    marks: ["Sindre Sorhus", "2021 Yoshiya Hinosawa", "Giuseppe Eletto"],
  },
  {
    name: "ua-parser-js",
    inside: "deno-std",
    where: "http/user_agent.js, from version 1 of https://github.com/faisalman/ua-parser-js",
    license: "MIT",
    copyright: "Copyright (c) 2012-2024 Faisal Salman",
    marks: ["Faisal Salman"],
  },
  {
    name: "front-matter",
    inside: "deno-std",
    where: "front_matter/mod.js, from https://github.com/jxson/front-matter",
    license: "MIT",
    copyright: "Copyright (c) Jason Campbell",
    marks: ["Jason Campbell"],
  },
  {
    name: "unicode_width",
    inside: "deno-std",
    where: "cli/unicode_width.js, from https://github.com/unicode-rs/unicode-width",
    license: "MIT",
    copyright: "Copyright (c) 2015 The Rust Project Developers",
    marks: ["The Rust Project Developers"],
  },
  {
    name: "base32",
    inside: "deno-std",
    where: "encoding/base32.js",
    license: "MIT",
    copyright: "Copyright (c) 2014 Jameson Little",
    marks: ["Jameson Little"],
  },
  {
    name: "varint",
    inside: "deno-std",
    where: "encoding/varint.js",
    license: "MIT",
    copyright: 'Copyright 2020 Keith Cirkel, Copyright 2023 Skye "MierenManz"',
    marks: ["Keith Cirkel", "MierenManz"],
  },
  {
    name: "expect-utils of Jest",
    inside: "deno-std",
    where: "expect, from https://github.com/jestjs/jest",
    license: "MIT",
    copyright: "Copyright (c) Meta Platforms, Inc. and affiliates",
    marks: ["Meta Platforms"],
  },
  {
    name: "expect of allain",
    inside: "deno-std",
    where: "expect, from https://github.com/allain/expect",
    license: "ISC",
    copyright: "Copyright 2019 Allain Lalonde",
    marks: ["Allain Lalonde"],
  },
  {
    name: "node-semver",
    inside: "deno-std",
    where: "semver, from https://github.com/npm/node-semver",
    license: "ISC",
    copyright: "Copyright Isaac Z. Schlueter and Contributors",
    marks: ["Isaac Z. Schlueter and Contributors"],
  },
  {
    name: "encoding/csv and encoding/hex of Go",
    inside: "deno-std",
    where: "csv/_io.js and encoding/hex.js, from https://github.com/golang/go",
    license: "BSD-3-Clause",
    copyright: "Copyright 2009, 2011 The Go Authors",
    marks: ["The Go Authors"],
  },
  {
    name: "crc16",
    inside: "cluster-key-slot",
    where: "lib/index.js, whose head has its licence",
    license: "BSD-3-Clause",
    copyright:
      "Copyright 2001-2010 Georges Menie, Copyright 2010 Salvatore Sanfilippo, Copyright 2015 Zihua Li, Copyright 2016 Mike Diarmid",
    marks: ["Georges Menie", "Salvatore Sanfilippo", "Zihua Li", "Mike Diarmid"],
  },
  {
    name: "es-toolkit",
    inside: "ioredis",
    where: "built/utils, from https://github.com/toss/es-toolkit",
    license: "MIT",
    copyright: "Copyright (c) 2024 Viva Republica, Inc, Copyright OpenJS Foundation and other contributors",
    marks: ["Viva Republica", "OpenJS Foundation"],
  },
  {
    name: "node-redis",
    inside: "ioredis",
    where: "built/resp, from https://github.com/redis/node-redis",
    license: "MIT",
    copyright: "Copyright (c) 2022-2023, Redis, Inc.",
    marks: ["Redis, Inc."],
  },
  {
    name: "@opentelemetry/redis-common",
    inside: "ioredis",
    where: "built/tracing.js, from https://github.com/open-telemetry/opentelemetry-js-contrib",
    license: "Apache-2.0",
    copyright: "Copyright The OpenTelemetry Authors",
  },
  {
    name: "visitor of jaens",
    inside: "zod",
    where: "v4/core/visit.js, from a gist of https://github.com/jaens",
    license: "Apache-2.0",
    copyright: "Copyright of the author of the gist, jaens",
  },
  {
    name: "valibot",
    inside: "zod",
    where: "v4/core/schemas.js, from https://github.com/fabian-hiller/valibot",
    license: "MIT",
    copyright: "Copyright (c) Fabian Hiller",
  },
  {
    name: "Squoosh",
    inside: "@jsquash/jpeg",
    where: "the loaders, and the codecs' interface, from https://github.com/GoogleChromeLabs/squoosh",
    license: "Apache-2.0",
    copyright: "Copyright 2020 Google Inc.",
    marks: ["2020 Google Inc."],
  },
  {
    name: "mozjpeg",
    inside: "@jsquash/jpeg",
    where:
      "codec/enc/mozjpeg_enc.wasm and codec/dec/mozjpeg_dec.wasm, version 3.3.1 of https://github.com/mozilla/mozjpeg",
    license: "BSD-3-Clause",
    copyright:
      "Copyright (C) 2009-2020 D. R. Commander, Copyright (C) 2015 Viktor Szathmáry, Copyright (C) 2014 Mozilla Corporation",
  },
  {
    name: "libjpeg",
    inside: "@jsquash/jpeg",
    where: "within mozjpeg, from https://ijg.org",
    license: "IJG",
    copyright:
      "Copyright (C) 1991-2017 Thomas G. Lane, Guido Vollbeding, the libjpeg-turbo project and others; this software is based in part on the work of the Independent JPEG Group",
  },
  ...runtimeOfEmscripten("@jsquash/jpeg"),
  {
    name: "Squoosh",
    inside: "@jsquash/webp",
    where: "the loaders, and the codecs' interface, from https://github.com/GoogleChromeLabs/squoosh",
    license: "Apache-2.0",
    copyright: "Copyright 2020 Google Inc.",
    marks: ["2020 Google Inc."],
  },
  {
    name: "libwebp",
    inside: "@jsquash/webp",
    where: "the WebAssembly in codec, from https://chromium.googlesource.com/webm/libwebp",
    license: "BSD-3-Clause",
    copyright: "Copyright (c) 2010, Google Inc.",
  },
  ...runtimeOfEmscripten("@jsquash/webp"),
  {
    name: "fflate",
    inside: "imagescript",
    where: "png/src/zlib.mjs, from https://github.com/101arrowz/fflate",
    license: "MIT",
    copyright: "Copyright (c) 2020 Arjun Barrett",
    marks: ["Arjun Barrett"],
  },
  {
    name: "jpeg-decoder",
    inside: "imagescript",
    where: "wasm/any/jpeg.wasm, from https://github.com/image-rs/jpeg-decoder",
    license: "MIT",
    copyright: "Copyright (c) 2016 The jpeg-decoder Developers",
  },
];

/** Returns the code that Emscripten adds to every program, for one package. */
function runtimeOfEmscripten(inside: string): BundledCode[] {
  return [
    {
      name: "emscripten",
      inside,
      where: "the WebAssembly and its loaders in codec, from https://github.com/emscripten-core/emscripten",
      license: "MIT",
      copyright: "Copyright (c) 2010-2014 Emscripten authors",
    },
    {
      name: "musl",
      inside,
      where: "the WebAssembly in codec, from https://musl.libc.org",
      license: "MIT",
      copyright: "Copyright (c) 2005-2020 Rich Felker, et al.",
    },
    {
      name: "libc++ and libc++abi of LLVM",
      inside,
      where: "the WebAssembly in codec, from https://github.com/llvm/llvm-project",
      license: "Apache-2.0",
      copyright: "Copyright (c) 2003-2019 the contributors to the LLVM project; with the LLVM exception",
    },
  ];
}

/** Words in the notices of the packages themselves, like the marks of their pieces. */
export const OWN_MARKS: Readonly<Record<string, readonly string[]>> = {
  "deno-std": ["the Deno authors"],
  "d3-array": ["Mike Bostock"],
  "d3-color": ["Mike Bostock"],
  "d3-format": ["Mike Bostock"],
  "d3-interpolate": ["Mike Bostock"],
  "d3-path": ["Mike Bostock"],
  "d3-scale": ["Mike Bostock"],
  "d3-shape": ["Mike Bostock"],
  "d3-time": ["Mike Bostock"],
  "d3-time-format": ["Mike Bostock"],
  "debug": ["TJ Holowaychuk", "Josh Junon"],
  "internmap": ["Mike Bostock"],
};

/** A file or folder of a package that executables leave out. */
export interface OmittedFiles {
  package: string;
  /** Path in the package. */
  path: string;
  /** The reason. */
  why: string;
}

/** Files of js-tiktoken with the vocabularies of other models: 20 of its 22 MB. */
const OTHER_VOCABULARIES = ["gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base"].flatMap((name) => [
  `dist/ranks/${name}.js`,
  `dist/ranks/${name}.cjs`,
]);

/**
 * Parts of packages that are not used, and that are large, or whose licences forbid passing them on or would have to be
 * listed.
 */
export const LEFT_OUT: readonly OmittedFiles[] = [
  {
    package: "imagescript",
    path: "codecs",
    why: "not used: native encoders, which hold libimagequant (GPL-3.0-or-later) and whose sources are not published",
  },
  { package: "imagescript", path: "wasm/any/svg.wasm", why: "not used; holds resvg (MPL-2.0)" },
  { package: "imagescript", path: "wasm/any/font.wasm", why: "not used" },
  { package: "imagescript", path: "wasm/any/gif.wasm", why: "not used" },
  { package: "imagescript", path: "wasm/any/tiff.wasm", why: "not used" },
  ...[...OTHER_VOCABULARIES, "dist/ranks/o200k_base.cjs", "dist/index.js", "dist/index.cjs"]
    .map((path) => ({ package: "js-tiktoken", path, why: "not used" })),
  { package: "zod", path: "src", why: "not used: the sources of what is in the other folders" },
];

/** The runtime in the executable. The many Rust crates that it consists of are not listed. */
export const RUNTIME: readonly (Omit<BundledCode, "inside"> & { key: "deno" | "v8" | "sqlite" })[] = [
  {
    key: "deno",
    name: "deno",
    where: "https://github.com/denoland/deno",
    license: "MIT",
    copyright: "Copyright 2018-2026 the Deno authors",
  },
  {
    key: "v8",
    name: "v8",
    where: "https://v8.dev",
    license: "BSD-3-Clause",
    copyright: "Copyright 2006-2011, the V8 project authors",
  },
  {
    key: "sqlite",
    name: "sqlite",
    where: "https://sqlite.org",
    license: "blessing",
    copyright: "Its authors disclaim copyright",
  },
];
