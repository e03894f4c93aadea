/** The fields of pods, namespaces and networking.k8s.io/v1 NetworkPolicies from which rules are made. */

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

export interface PolicyPort {
  /** Default TCP. */
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP';
  /** A number, or the name of a container's port; absent: all. */
  readonly port?: number | string;
  readonly endPort?: number;
}

export interface PolicyPeer {
  readonly podSelector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}

export interface NetworkPolicy {
  readonly metadata: { readonly namespace: string };
  readonly spec: {
    readonly podSelector?: LabelSelector;
    readonly policyTypes?: readonly ('Ingress' | 'Egress')[];
    readonly ingress?: readonly {
      readonly from?: readonly PolicyPeer[];
      readonly ports?: readonly PolicyPort[];
    }[];
    readonly egress?: readonly {
      readonly to?: readonly PolicyPeer[];
      readonly ports?: readonly PolicyPort[];
    }[];
  };
}

export interface Pod {
  readonly metadata: { readonly namespace: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly nodeName?: string;
    readonly hostNetwork?: boolean;
    readonly containers: readonly {
      readonly ports?: readonly {
        readonly name?: string;
        readonly containerPort: number;
        readonly protocol?: string;
      }[];
    }[];
  };
  readonly status?: { readonly phase?: string; readonly podIP?: string };
}

export interface Namespace {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
}

export interface World {
  readonly pods: readonly Pod[];
  readonly namespaces: readonly Namespace[];
  readonly policies: readonly NetworkPolicy[];
}

/** Whether labels match a selector; an empty selector matches everything. */
export function selects(selector: LabelSelector, labels: Readonly<Record<string, string>> = {}): boolean {
  const valueOf = (key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  const equal = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => valueOf(key) === value);
  const expressed = (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = valueOf(key);
    const isListed = value !== undefined && values.includes(value);
    return {
      In: isListed,
      NotIn: !isListed,
      Exists: value !== undefined,
      DoesNotExist: value === undefined,
    }[operator];
  });
  return equal && expressed;
}
