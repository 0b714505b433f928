/** W3C trace context of the caller, if OpenTelemetry is installed. */

/** Writes the headers of the active trace into a carrier. */
export type Inject = (headers: Record<string, string>) => void;

/** Returns the injector of `@opentelemetry/api`, or an injector of no headers where that package is not installed. */
export async function loadInject(): Promise<Inject> {
  try {
    const { context, propagation } = await import("@opentelemetry/api");
    return (headers) => {
      const found: Record<string, string> = {};
      try {
        propagation.inject(context.active(), found);
      } catch {
        // A tracer that fails must not decide about a call.
      }
      for (const [name, value] of Object.entries(found)) if (/^[\x20-\x7e]*$/u.test(value)) headers[name] = value;
    };
  } catch {
    return () => undefined;
  }
}
