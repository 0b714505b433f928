import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "build", "eslint.config.js"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { project: ["./tsconfig.json", "./test/tsconfig.json"] } },
    rules: {
      "max-lines": ["error", 400],
      "max-lines-per-function": ["error", { max: 60, skipComments: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  {
    files: ["test/**"],
    rules: {
      "max-lines-per-function": "off",
      // `node --test` awaits `test` and `suite` itself.
      "@typescript-eslint/no-floating-promises": "off",
      "@typescript-eslint/require-await": "off",
      "@typescript-eslint/no-non-null-assertion": "off",
    },
  },
);
