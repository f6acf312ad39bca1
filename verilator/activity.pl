#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Makes the C++ of Verilator 5.0 follow activity: usage activity.pl DIR (with the model Vrnic).
#
# Verilator evaluates every statement of the design in every cycle. Most of them have nothing to do in most cycles: a
# statement whose inputs are what they were when it ran last would write what is there already. This cuts the code of the
# clock edge (and of the combinational paths from the inputs) into pieces, each a function with a bit in a mask. A piece
# runs if its bit is set; when it has changed a variable, it sets the bits of the pieces that depend on it. The order of
# the pieces is one that Verilator's order of statements allows, so a cycle gives the same as before, bit for bit.
#
# A piece depends on the variables whose value before the piece matters: those it reads before it has assigned all of
# them, and those that other pieces write as well. What a piece only uses within itself becomes a local variable.
#
# With -DRNIC_ACTIVITY_CHECK all pieces run, and one that changes something without its bit being set ends the program.
# Code that is not as expected (another version of Verilator) is left alone, which is slower and nothing else.
use strict;
use warnings;

my $dir = shift // die "usage: activity.pl DIR\n";
my $P = 'Vrnic___024root';

sub give_up { print "activity: not applied: $_[0]\n"; exit 0; }
sub slurp { open(my $f, '<', $_[0]) or die "$_[0]: $!\n"; local $/; my $t = <$f>; close $f; return $t; }
sub spew { open(my $f, '>', $_[0]) or die "$_[0]: $!\n"; print $f $_[1]; close $f or die "$_[0]: $!\n"; }

# ---- the variables of the model: name -> { n: [elements of the array, words of an element], bytes, port }

my $header = slurp("$dir/$P.h");
my %var;
sub type_shape {  # C++ type -> elements (0: no array), words (0: no VlWide), bytes of an element
  my ($t) = @_;
  $t =~ s{/\*.*?\*/}{}g;
  $t =~ s/\s+$//;
  my %bytes = (CData => 1, SData => 2, IData => 4, QData => 8);
  return [0, 0, $bytes{$t}] if $bytes{$t};
  return [0, $1, 4 * $1] if $t =~ /^VlWide<(\d+)>$/;
  if ($t =~ /^VlUnpacked<(.*), (\d+)>$/) {
    my ($e, $n) = ($1, $2);
    my $s = type_shape($e);
    return undef if !$s || $s->[0];
    return [$n, $s->[1], $s->[2]];
  }
  return undef;
}
sub declare {
  my ($name, $type, $port) = @_;
  my $s = type_shape($type) or give_up("type $type of $name");
  $var{$name} = {shape => $s, type => $type, port => $port};
}
while ($header =~ /^\s+VL_(IN|OUT|INOUT)(8|16|64|W|)\(&?(\w+),(\d+),(\d+)(?:,(\d+))?\);/mg) {
  my ($d, $k, $name, $hi, $lo, $w) = ($1, $2, $3, $4, $5, $6);
  declare("vlSelf->$name", $k eq 'W' ? "VlWide<$w>" : {8 => 'CData', 16 => 'SData', '' => 'IData', 64 => 'QData'}->{$k}, lc $d);
}
while ($header =~ /^\s+((?:[CSIQ]Data|VlWide<|VlUnpacked<)\S*(?: \d+>)?) (\w+);/mg) { declare("vlSelf->$2", $1, ''); }

# ---- the functions to cut up

my %file;  # name -> text
my %func;  # name -> [file, begin, end]
for my $f (sort glob "$dir/${P}__DepSet_*.cpp") {
  next if $f =~ /Slow/;
  $file{$f} = slurp($f);
  while ($file{$f} =~ /^(?:VL_INLINE_OPT )?void (\w+)\($P\* vlSelf\) \{\n(.*?)^\}\n/msg) { $func{$1} = [$f, $-[0], $+[0], $2]; }
}
sub num { my ($x) = @_; return $x =~ /^0x/ ? hex $x : $x; }
sub body_of { my $f = $func{$_[0]} or give_up("no function $_[0]"); return $f->[3] =~ m{// Body\n(.*)}s ? $1 : q(); }
sub calls {
  my ($phase, $trigger) = @_;
  my $b = body_of("${P}___eval_$phase");
  $b =~ /^    if \(vlSelf->__V${trigger}Triggered\.at\(0U\)\) \{\n((?:        ${P}___\w+\(vlSelf\);\n)+)    \}\n$/ or
    give_up("eval_$phase is not one list of calls");
  return $1 =~ /(${P}___\w+)\(vlSelf\)/g;
}
body_of("${P}___eval_act") =~ /\S/ and give_up('there are derived clocks');
(my $trig = body_of("${P}___eval_triggers__act")) =~ s/\s+//g;
$trig =~ /^vlSelf->__VactTriggered\.at\(0U\)=\(\(IData\)\(vlSelf->clk_i\)&\(~\(IData\)\(vlSelf->__Vtrigrprev__TOP__clk_i\)\)\);vlSelf->__Vtrigrprev/ or
  give_up('the rising edge of clk_i is not the only trigger');
my @phase = ({name => 'ico', calls => [calls('ico', 'ico')]}, {name => 'nba', calls => [calls('nba', 'nba')]});

# ---- parsing: a statement is {k: leaf|if|while|block|goto|label, t: text, ...}

my $src;
sub ws { $src =~ /\G\s+/gc; }
sub paren {  # text of a balanced (...), at pos
  my $from = pos $src;
  my $depth = 0;
  while ($src =~ /\G[^()]*([()])/gc) {
    $depth += $1 eq '(' ? 1 : -1;
    return substr($src, $from, pos($src) - $from) if $depth == 0;
  }
  give_up('parenthesis');
}
sub braces { ws(); $src =~ /\G\{/gc or give_up('brace'); my $l = statements(); $src =~ /\G\}/gc or give_up('brace'); return $l; }
sub statements {
  my @l;
  while (1) {
    ws();
    last if $src =~ /\G(?=\})/gc || pos($src) >= length $src;
    if ($src =~ /\Gif (?=\()/gc) {
      my $s = {k => 'if', t => paren(), then => braces(), else => []};
      push @l, $s;
      ws();
      while ($src =~ /\Gelse\b/gc) {
        ws();
        if ($src =~ /\Gif (?=\()/gc) {
          my $n = {k => 'if', t => paren(), then => braces(), else => []};
          $s->{else} = [$n];
          $s = $n;
          ws();
        } else {
          $s->{else} = braces();
          last;
        }
      }
    } elsif ($src =~ /\Gwhile (?=\()/gc) {
      push @l, {k => 'while', t => paren(), then => braces()};
    } elsif ($src =~ /\G(?=\{)/gc) {
      push @l, {k => 'block', then => braces()};
    } elsif ($src =~ /\Ggoto (\w+);/gc) {
      push @l, {k => 'goto', t => $1};
    } elsif ($src =~ /\G(\w+): ;/gc) {
      push @l, {k => 'label', t => $1};
    } elsif ($src =~ /\G([^;{}"]*);/gc) {
      (my $t = $1) =~ s/\s+/ /g;
      push @l, {k => 'leaf', t => $t};
    } else {
      give_up('statement at: ' . substr($src, pos $src, 60));
    }
  }
  return \@l;
}

# The places where variables are named in an expression: [name, constant subscripts as text, subscripts end]
my $fn;  # the function whose locals are visible
my %local;  # function -> name -> declared (the key in %var is "function:name")
my %known = map { $_ => 1 } qw(IData QData CData SData WData EData VlWide U ULL if else while vlSelf);
sub names {
  my ($t) = @_;
  my @r;
  while ($t =~ /\G.*?((?:vlSelf->)?\b[A-Za-z_]\w*)/gcs) {
    my $n = $1;
    if ($n =~ /^vlSelf->/) { $var{$n} or give_up("unknown $n"); }
    elsif ($local{$fn}{$n}) { $n = "$fn:$n"; }
    elsif ($known{$n} || $n =~ /^VL_[A-Z0-9_]+$/ || $n =~ /^Vrnic__ConstPool__/) { next; }
    else { give_up("unknown name $n in $fn: $t"); }
    my $sub = '';
    my $max = ($var{$n}{shape}[0] ? 1 : 0) + ($var{$n}{shape}[1] ? 1 : 0);
    while ($max-- > 0 && $t =~ /\G\[(0x[0-9a-f]+|\d+)U\]/gc) { $sub .= '[' . num($1) . ']'; }
    push @r, [$n, $sub];
  }
  return @r;
}
# All constant subscripts of a variable.
sub all_subs {
  my ($n) = @_;
  my ($a, $w) = @{$var{$n}{shape}};
  return ('') if !$a && !$w;
  return map { "[$_]" } 0 .. $a - 1 if $a && !$w;
  return map { "[$_]" } 0 .. $w - 1 if !$a;
  return map { my $i = $_; map { "[$i][$_]" } 0 .. $w - 1 } 0 .. $a - 1;
}

# Splits a leaf: what it writes ([name, subscripts, whole?] or undef), its target text, and what it reads.
my %out_arg = (ASSIGN_W => 1, ZERO_W => 1, CONST_W_1X => 1, ADD_W => 1, SUB_W => 1, MUL_W => 1, SHIFTL_WWI => 3, SHIFTR_WWI => 3, SHIFTL_WWW => 3,
               SHIFTR_WWW => 3, SHIFTRS_WWI => 3, ASSIGNSEL_WQ => 3, ASSIGNSEL_WI => 3, ASSIGNSEL_WW => 3, EXTEND_WQ => 2, EXTEND_WI => 2, EXTEND_WW => 2,
               ASSIGNSEL_II => 3, ASSIGNSEL_QI => 3, ASSIGNSEL_QQ => 3, SEL_WWII => 4, NOT_W => 1, AND_W => 1, OR_W => 1, XOR_W => 1);
sub target {  # leading lvalue of a text: name, constant subscripts, text, exact (no other subscripts)
  my ($t) = @_;
  $t =~ /^\s*((?:vlSelf->)?[A-Za-z_]\w*)/gc or return;
  my $n = $1;
  $n = "$fn:$n" if $n !~ /^vlSelf->/;
  $var{$n} or return;
  my ($sub, $exact, $inner) = ('', 1, '');
  while ($t =~ /\G\[/gc) {
    my $from = pos $t;
    my $d = 1;
    while ($d && $t =~ /\G[^\[\]]*([\[\]])/gc) { $d += $1 eq '[' ? 1 : -1; }
    my $e = substr($t, $from, pos($t) - 1 - $from);
    if ($e =~ /^(0x[0-9a-f]+|\d+)U$/) { $sub .= '[' . num($1) . ']' if $exact; }
    else { $exact = 0; $inner .= " $e"; }
  }
  return ($n, $sub, substr($t, 0, pos $t), $exact, $inner, substr($t, pos $t));
}
sub leaf {
  my ($s) = @_;
  return if $s->{done}++;
  my $t = $s->{t};
  if ($t =~ /^VL_(\w+)\((.*)\)$/s) {
    my ($f, $args) = ($1, $2);
    my @a = ('');
    my $d = 0;
    for my $c (split /([(),])/, $args) {
      if ($c eq ',' && $d == 0) { push @a, ''; next; }
      $d++ if $c eq '(';
      $d-- if $c eq ')';
      $a[-1] .= $c;
    }
    my $o = $out_arg{$f} // give_up("statement VL_$f");
    my ($n, $sub, $text, $exact, $inner, $rest) = target($a[$o]);
    give_up("target of $t") if !defined $n || $rest =~ /\S/;
    splice @a, $o, 1;
    $s->{w} = [$n, $sub, $exact && $f !~ /^ASSIGNSEL/];
    $s->{lhs} = $text;
    $s->{from} = $a[1] if $f eq 'ASSIGN_W';  # what is left: width, source
    $s->{r} = [names(join(' , ', @a, $inner))];
    return;
  }
  my ($n, $sub, $text, $exact, $inner, $rest) = target($t);
  give_up("leaf $t") if !defined $n || $rest !~ /^\s*=(?!=)(.*)$/s;
  $s->{w} = [$n, $sub, $exact];
  $s->{lhs} = $text;
  $s->{r} = [names($1 . $inner)];
}

# Which variables a list of statements needs from before (live), and writes. @trail: assignments on the path so far.
my (%asg, @trail, %live, %wrote, %named, %labels, $dead);
sub use_name {
  my ($n, $sub) = @_;
  $named{$n} = 1;
  return if $live{$n} || $dead || $asg{$n};
  return if $sub ne '' && $asg{"$n$sub"};
  my @all = all_subs($n);
  if (@all <= 4096) {
    my $need = 0;
    for my $k (@all) { if (index($k, $sub) == 0 && !$asg{"$n$k"}) { $need = 1; last; } }
    return if !$need;
  }
  $live{$n} = 1;
}
sub assign { my ($k) = @_; if (!$asg{$k}) { $asg{$k} = 1; push @trail, $k; } }
sub undo { my ($to) = @_; my @k; while (@trail > $to) { my $k = pop @trail; delete $asg{$k}; push @k, $k; } return \@k; }
sub both { my ($x, $y) = @_; my %h = map { $_ => 1 } @$x; return [grep { $h{$_} } @$y]; }
sub flow {
  my ($l) = @_;
  for my $s (@$l) {
    my $k = $s->{k};
    if ($k eq 'leaf') {
      leaf($s);
      use_name(@$_) for @{$s->{r}};
      my ($n, $sub, $whole) = @{$s->{w}};
      $named{$n} = $wrote{$n} = 1;
      if ($whole && !$dead) {
        my ($a, $w) = @{$var{$n}{shape}};
        my $depth = () = $sub =~ /\[/g;
        assign($depth == 0 ? $n : "$n$sub") if $depth == 0 || !$a || !$w || $depth == 2;
        if ($depth == 1 && $a && $w) { assign("$n$sub" . "[$_]") for 0 .. $w - 1; }
      }
    } elsif ($k eq 'if') {
      use_name(@$_) for names($s->{t});
      my $at = @trail;
      my $was = $dead;
      flow($s->{then});
      my $d1 = $dead;
      my $a1 = undo($at);
      $dead = $was;
      flow($s->{else});
      my $d2 = $dead;
      my $a2 = undo($at);
      $dead = $d1 && $d2;
      assign($_) for @{$d1 ? $a2 : $d2 ? $a1 : both($a1, $a2)};
    } elsif ($k eq 'while') {
      use_name(@$_) for names($s->{t});
      my $at = @trail;
      flow($s->{then});
      undo($at);
      give_up('goto in a loop') if $dead;
    } elsif ($k eq 'block') {
      my ($label) = map { $_->{t} } grep { $_->{k} eq 'label' } @{$s->{then}};
      $labels{$label} = {at => scalar @trail} if defined $label;
      flow($s->{then});
    } elsif ($k eq 'goto') {
      my $lb = $labels{$s->{t}} or give_up("label $s->{t}");
      my @now = @trail[$lb->{at} .. $#trail];
      $lb->{set} = $lb->{set} ? both($lb->{set}, \@now) : \@now;
      $dead = 1;
    } else {
      my $lb = $labels{$s->{t}} or give_up("label $s->{t}");
      my $now = undo($lb->{at});
      my $set = $dead ? $lb->{set} : $lb->{set} ? both($lb->{set}, $now) : $now;
      $dead = 0 if $lb->{set};
      assign($_) for @{$set // []};
    }
  }
}
sub analyse {
  my ($l) = @_;
  (%asg, @trail, %live, %wrote, %named, %labels) = ();
  $dead = 0;
  flow($l);
  return ({%live}, {%wrote}, {%named});
}
sub weight { my ($l) = @_; my $n = 0; for my $s (@$l) { $n++; $n += weight($s->{then}) if $s->{then}; $n += weight($s->{else}) if $s->{else}; } return $n; }

# A local serves many statements of a function one after the other. Each use gets a variable of its own, from where the value
# of before does not matter: else statements that have nothing to do with each other would depend on each other.
sub split_locals {
  my ($f, $units) = @_;
  my (@info, @begins, %after);
  for my $u (@$units) {
    my ($live, undef, $named) = analyse($u);
    my %set;
    for my $n (grep { $var{$_}{local} } keys %$named) { $set{$n} = 1 if $asg{$n} || !grep { !$asg{"$n$_"} } all_subs($n); }
    push @info, {live => $live, named => $named, set => \%set};
  }
  for my $i (reverse 0 .. $#info) {  # %after: needed behind unit $i
    my $x = $info[$i];
    delete $after{$_} for keys %{$x->{set}};
    for my $n (keys %{$x->{live}}) { $after{$n} = 1 if $var{$n}{local}; }
    $begins[$i] = {map { $_ => 1 } grep { $var{$_}{local} && !$after{$_} } keys %{$x->{named}}};
  }
  my (%uses, %name);  # variable -> how often it has begun, its name now
  for my $i (0 .. $#info) {
    for my $n (keys %{$begins[$i]}) {
      next if $n =~ /:__Vilp$/ || !$uses{$n}++;  # a loop's counter: trim_locals.pl knows it by its name
      (my $old = $n) =~ s/^.*://;
      my $new = $old . '__use' . $uses{$n};
      $name{$old} = $new;
      $local{$f}{$new} = 1;
      $var{"$f:$new"} = {%{$var{$n}}};
    }
    my %now = map { (my $old = $_) =~ s/^.*://; $name{$old} ? ($old => $name{$old}) : () } grep { $var{$_}{local} } keys %{$info[$i]{named}};
    if (%now) { rename_in($_, \%now) for @{$units->[$i]}; }
  }
}
sub rename_in {
  my ($s, $new) = @_;
  if (defined $s->{t} && $s->{k} =~ /^(?:leaf|if|while)$/) {
    $s->{t} =~ s{((?:vlSelf->)?\b[A-Za-z_]\w*)}{$new->{$1} // $1}ge;
    delete @$s{qw(done w lhs from r)};
    leaf($s) if $s->{k} eq 'leaf';
  }
  rename_in($_, $new) for @{$s->{then} // []}, @{$s->{else} // []};
}

# ---- units: the statements of the two phases, in order

my %promoted;
for my $ph (@phase) {
  my @units;
  for my $f (@{$ph->{calls}}) {
    $fn = $f;
    my $text = $func{$f} or give_up("no function $f");
    $text = $text->[3];
    $text =~ /vlSymsp->/ and give_up("$f refers to more than the model");
    if ($text =~ m{// Init\n(.*?)^    // Body\n}ms) {
      for my $line (split /\n/, $1) {
        if ($line =~ m{^    ((?:[CSIQ]Data|VlWide<|VlUnpacked<)\S*(?: \d+>\S*)?) (\w+);$}) {
          $local{$f}{$2} = 1;
          declare("$f:$2", $1, '');
          $var{"$f:$2"}{local} = 1;
        } elsif ($line =~ /^\s*(?:\w+ = 0;|VL_ZERO_W\(\d+, \w+\);)?$/) {
          next;
        } else {
          give_up("local: $line");
        }
      }
    }
    $text =~ m{// Body\n(.*)}s or give_up("$f has no body");
    $src = $1;
    pos($src) = 0;
    my $l = statements();
    # Words of one variable one after the other, and a loop with the statement before, stay together.
    my @own;
    for my $s (@$l) {
      leaf($s) if $s->{k} eq 'leaf';
      my $last = $own[-1];
      if ($last && ($s->{k} eq 'while' ||
                    ($s->{k} eq 'leaf' && $last->[-1]{k} eq 'leaf' && $last->[-1]{w}[0] eq $s->{w}[0] && $s->{w}[1] ne ''))) {
        push @$last, $s;
      } else {
        push @own, [$s];
      }
    }
    split_locals($f, \@own);
    for my $u (@own) {
      my ($live, $wrote, $named) = analyse($u);
      push @units, {fn => $f, s => $u, live => $live, wrote => $wrote, named => $named, weight => weight($u), i => scalar @units};
    }
    # A local that may be read before it is assigned would show its initial zero.
    my ($live) = analyse($l);
    for my $n (keys %$live) { $var{$n}{zero} = 1 if $var{$n}{local}; }
  }
  $ph->{units} = \@units;
}

# A store of an array carries its subscripts and data in such variables; only the flag beside them says that they count.
sub payload_of_store { return $_[0] =~ /\b__Vdlyv(?:val|dim\d+|lsb)__/; }
for my $v (keys %var) { delete $var{$v}{zero} if payload_of_store($v); }

# ---- groups of units

for my $ph (@phase) {
  my $u = $ph->{units};
  my $n = @$u;
  my (%flows, %last_w, %readers);
  for my $x (@$u) { $flows{$_} = 1 for keys %{$x->{live}}; }
  my @succ = map { {} } 1 .. $n;
  for my $i (0 .. $n - 1) {
    for my $v (keys %{$u->[$i]{named}}) {
      next if !$flows{$v} && $var{$v}{local};
      if ($u->[$i]{wrote}{$v}) {
        for my $j (defined $last_w{$v} ? $last_w{$v} : (), @{$readers{$v} // []}) { $succ[$j]{$i} = 1 if $j != $i; }
        $last_w{$v} = $i;
        $readers{$v} = [];
      } else {
        $succ[$last_w{$v}]{$i} = 1 if defined $last_w{$v};
        push @{$readers{$v}}, $i;
      }
    }
  }
  my $zero = "\0" x (($n + 7) >> 3);
  my @reach;
  for my $i (reverse 0 .. $n - 1) {
    my $r = $zero;
    for my $j (keys %{$succ[$i]}) { vec($r, $j, 1) = 1; $r |= $reach[$j]; }
    $reach[$i] = $r;
  }
  my @gid = 0 .. $n - 1;
  my @member = map { [$_] } 0 .. $n - 1;
  my @weight = map { $_->{weight} } @$u;
  my %alive = map { $_ => 1 } 0 .. $n - 1;
  my $between = sub {  # a third group on a path from $x to $y
    my ($x, $y) = @_;
    return 0 if !vec($reach[$x], $y, 1);
    for my $m (@{$member[$x]}) {
      for my $s (keys %{$succ[$m]}) {
        my $g = $gid[$s];
        return 1 if $g != $x && $g != $y && vec($reach[$g], $y, 1);
      }
    }
    return 0;
  };
  my $merge = sub {
    my ($x, $y) = @_;
    return 1 if $x == $y;
    return 0 if $between->($x, $y) || $between->($y, $x);
    my $r = $reach[$x] | $reach[$y];
    vec($r, $x, 1) = 0;
    vec($r, $y, 1) = 0;
    $gid[$_] = $x for @{$member[$y]};
    push @{$member[$x]}, @{$member[$y]};
    $weight[$x] += $weight[$y];
    delete $alive{$y};
    $reach[$x] = $r;
    for my $g (keys %alive) {
      next if $g == $x || !(vec($reach[$g], $x, 1) || vec($reach[$g], $y, 1));
      $reach[$g] |= $r;
      vec($reach[$g], $x, 1) = 1;
      vec($reach[$g], $y, 1) = 0;
    }
    return 1;
  };
  my $users = sub {  # variable -> [groups that name it], [groups that write it]
    my (%by, %w);
    for my $i (0 .. $n - 1) {
      for my $v (keys %{$u->[$i]{named}}) { $by{$v}{$gid[$i]} = 1; $w{$v}{$gid[$i]} = 1 if $u->[$i]{wrote}{$v}; }
    }
    return (\%by, \%w);
  };
  # What belongs to one register or one statement.
  my ($by) = $users->();
  for my $v (sort keys %$by) {
    next unless $v =~ /\b__V(?:dly|temp|tableidx)/ || ($var{$v}{zero} && $flows{$v});
    my %g = map { $gid[$_] => 1 } keys %{$by->{$v}};
    my ($first, @rest) = sort { $a <=> $b } keys %g;
    for my $y (@rest) { $merge->($gid[$first], $gid[$y]) or ($var{$v}{zero} && give_up("$v cannot stay in one piece")); }
  }
  # What several statements write: a default first, then exceptions.
  my ($all, $by_w) = $users->();
  for my $v (sort keys %$by_w) {
    my ($x, @rest) = sort { $a <=> $b } keys %{$by_w->{$v}};
    $merge->($gid[$x], $gid[$_]) for @rest;
  }
  # What one piece makes and one other uses.
  my $small = 12;
  my $cap = 60;
  for my $round (1 .. 3) {
    my ($by, $w) = $users->();
    my $did = 0;
    for my $v (sort keys %$by) {
      my %g = map { $gid[$_] => 1 } keys %{$by->{$v}};
      next unless keys %g == 2;
      my %w = map { $gid[$_] => 1 } keys %{$w->{$v} // {}};
      next unless keys %w == 1;
      my ($x) = keys %w;
      my ($y) = grep { $_ != $x } keys %g;
      next if $weight[$x] > $small && $weight[$y] > $small;
      next if $weight[$x] + $weight[$y] > $cap;
      $did++ if $merge->($x, $y);
    }
    last if !$did;
  }
  # Pieces that depend on the same variables.
  my (%same);
  for my $g (sort { $a <=> $b } keys %alive) {
    my %l;
    for my $m (@{$member[$g]}) { $l{$_} = 1 for keys %{$u->[$m]{live}}; }
    my $key = join ' ', sort keys %l;
    next if $key eq '';
    if (defined $same{$key} && $weight[$same{$key}] + $weight[$g] <= $cap && $merge->($same{$key}, $g)) { next; }
    $same{$key} = $g;
  }
  # An order of the groups, near to that of the units.
  my (%in, %out);
  for my $i (0 .. $n - 1) {
    for my $j (keys %{$succ[$i]}) { my ($x, $y) = @gid[$i, $j]; $out{$x}{$y} = 1 if $x != $y; }
  }
  for my $x (keys %out) { $in{$_}++ for keys %{$out{$x}}; }
  my %first = map { my $g = $_; my ($m) = sort { $a <=> $b } @{$member[$g]}; ($g => $m) } keys %alive;
  my @ready = sort { $first{$a} <=> $first{$b} } grep { !$in{$_} } keys %alive;
  my @order;
  while (@ready) {
    my $g = shift @ready;
    push @order, $g;
    my @new = grep { --$in{$_} == 0 } keys %{$out{$g} // {}};
    @ready = sort { $first{$a} <=> $first{$b} } @ready, @new if @new;
  }
  @order == keys %alive or die "activity: the pieces have no order\n";
  $ph->{pieces} = [map { my @m = sort { $a <=> $b } @{$member[$_]}; {units => [@$u[@m]], weight => $weight[$_]} } @order];
}

# ---- what every piece depends on, and who is told when a variable changes

# As analyse(), for units of several functions.
sub analyse_piece {
  my ($p) = @_;
  (%asg, @trail, %live, %wrote, %named, %labels) = ();
  $dead = 0;
  for my $u (@{$p->{units}}) { $fn = $u->{fn}; flow($u->{s}); }
  return ({%live}, {%wrote}, {%named});
}
my (@piece, %in_piece, %writers, %live_in);
for my $ph (@phase) {
  # Each phase begins with a mask of its own.
  while (@piece % 64) { push @piece, undef; }
  $ph->{first} = @piece;
  for my $p (@{$ph->{pieces}}) {
    $p->{id} = @piece;
    push @piece, $p;
    @$p{qw(live wrote named)} = analyse_piece($p);
    push @{$in_piece{$_}}, $p->{id} for keys %{$p->{named}};
    push @{$writers{$_}}, $p->{id} for keys %{$p->{wrote}};
  }
  $ph->{words} = [$ph->{first} >> 6, $#piece >> 6];
}
my $words = ($#piece >> 6) + 1;
my %own;  # variables of one piece only, which become its locals
for my $v (keys %in_piece) {
  next if @{$in_piece{$v}} != 1 || $var{$v}{port};
  my $p = $piece[$in_piece{$v}[0]];
  if ($var{$v}{local} || ($p->{wrote}{$v} && !$p->{live}{$v} && $var{$v}{shape}[0] <= 64)) {
    $own{$v} = 1;
    delete $p->{live}{$v};
  } elsif (payload_of_store($v)) {
    delete $p->{live}{$v};
  }
}
for my $p (@piece) { if ($p) { $live_in{$_} = 1 for keys %{$p->{live}}; } }
my %told;  # variable -> ids
for my $p (grep { defined } @piece) {
  my %s = %{$p->{live}};
  for my $v (keys %{$p->{wrote}}) { $s{$v} = 1 if !$own{$v} && @{$writers{$v}} > 1 && ($live_in{$v} || $var{$v}{port}); }
  push @{$told{$_}}, $p->{id} for keys %s;
}
sub masks {  # who else is told of a change that piece $id makes
  my ($v, $id) = @_;
  my %m;
  for my $t (@{$told{$v} // []}) {
    next if $t == $id && !$piece[$id]{live}{$v};
    push @{$m{$t >> 6}}, $t & 63;
  }
  my @r;
  for my $w (sort { $a <=> $b } keys %m) {
    my $x = 0;
    $x |= 1 << $_ for @{$m{$w}};
    push @r, sprintf('a[%d] |= 0x%xULL;', $w, $x);
  }
  return join ' ', @r;
}

# ---- C++

# A piece may have statements of several functions, whose locals may have the same name. Counters of loops may be one variable, and stay
# what trim_locals.pl knows them by; of the others each has its own name.
my (%promote, %cname, %taken);
for my $v (sort keys %in_piece) {
  if ($own{$v}) {
    ($cname{$v} = $v) =~ s/^.*(?:->|:)//;
    my $n = $taken{$in_piece{$v}[0]}{$cname{$v}}++;
    $cname{$v} .= "__of$n" if $n && $cname{$v} ne '__Vilp';
  } elsif ($var{$v}{local}) {
    $v =~ /^(.*):(.*)$/;
    my ($f, $n) = ($1, $2);
    my ($k) = grep { ($func{$_} && $_ eq $f) } $f;
    (my $short = $f) =~ s/^${P}___//;
    $promote{$v} = "${n}__$short";
    $cname{$v} = "vlSelf->__Vact.$promote{$v}";
  } else { $cname{$v} = $v; }
}
sub cxx {  # a text of function $fn with the names of the new code
  my ($t) = @_;
  $t =~ s{((?:vlSelf->)?\b[A-Za-z_]\w*)}{
    my $n = $1;
    my $k = $n =~ /^vlSelf->/ ? $n : $local{$fn}{$n} ? "$fn:$n" : '';
    $k ne '' ? $cname{$k} // die("activity: no name for $k\n") : $n }ge;
  return $t;
}
sub bytes { my ($a, $w, $b) = @{$var{$_[0]}{shape}}; return ($a || 1) * $b; }
my $old = 0;
my $pid;
# Writes the statements. $track: variables whose change is to be told, and that nothing around these statements watches.
sub emit {
  my ($l, $track, $ind) = @_;
  my (%at);  # variable -> statements that write it
  for my $i (0 .. $#$l) {
    my $w = written($l->[$i]);
    for my $v (keys %$w) { push @{$at{$v}}, $i if $track->{$v}; }
  }
  my (@down, %here);
  for my $v (keys %at) {
    if (bytes($v) > 512 && $var{$v}{shape}[0]) { $down[$_]{$v} = 1 for @{$at{$v}}; }  # a memory: at every store
    elsif (@{$at{$v}} == 1 && inner($l->[$at{$v}[0]], $v)) { $down[$at{$v}[0]]{$v} = 1; }
    else { push @{$here{$at{$v}[0] . ' ' . $at{$v}[-1]}}, $v; }
  }
  my (%before, %after);
  for my $k (sort keys %here) {
    my ($i, $j) = split / /, $k;
    # all at the last statement that writes one of them, to tell once
    for my $v (sort @{$here{$k}}) {
      my $m = masks($v, $pid);
      next if $m eq '';
      my $o = 'o' . $old++;
      push @{$before{$i}}, "const auto $o = $cname{$v};";
      my $x = $var{$v}{shape}[0] || $var{$v}{shape}[1] ? "act_differ($o, $cname{$v})" : "($o != $cname{$v})";
      push @{$after{$j}{$m}}, $x;
      push @{$after{$j}{"names $m"}}, $v;
    }
  }
  my $text = '';
  for my $i (0 .. $#$l) {
    my $s = $l->[$i];
    $text .= "$ind$_\n" for @{$before{$i} // []};
    if ($s->{k} eq 'leaf') {
      my ($v) = @{$s->{w}};
      my $m = $down[$i] && $down[$i]{$v} ? masks($v, $pid) : '';
      my $t = $s->{t};
      if (defined $s->{from}) {
        $text .= $m eq '' ? "${ind}act_copy($s->{lhs}, $s->{from});\n" : "${ind}if (act_differ($s->{lhs}, $s->{from})) { act_copy($s->{lhs}, $s->{from}); ACT_TELL(\"$v\") $m }\n";
      } elsif ($m ne '') {
        my $lhs = $s->{lhs};
        my $whole = ($var{$v}{shape}[1] && ($lhs =~ tr/[//) < 2);
        my $ne = $whole ? "act_differ(o, $lhs)" : "(o != $lhs)";
        $text .= "$ind\{ const auto o = $lhs; $t; if ($ne) { ACT_TELL(\"$v\") $m } }\n";
      } else {
        $text .= "$ind$t;\n";
      }
    } elsif ($s->{k} eq 'if') {
      $text .= "${ind}if $s->{t} {\n" . emit($s->{then}, $down[$i] // {}, "$ind  ") . "$ind}";
      $text .= " else {\n" . emit($s->{else}, $down[$i] // {}, "$ind  ") . "$ind}" if @{$s->{else}};
      $text .= "\n";
    } elsif ($s->{k} eq 'while') {
      $text .= "${ind}while $s->{t} {\n" . emit($s->{then}, $down[$i] // {}, "$ind  ") . "$ind}\n";
    } elsif ($s->{k} eq 'block') {
      $text .= "$ind\{\n" . emit($s->{then}, $down[$i] // {}, "$ind  ") . "$ind}\n";
    } elsif ($s->{k} eq 'goto') {
      $text .= "${ind}goto $s->{t};\n";
    } else {
      $text .= "$ind$s->{t}: ;\n";
    }
    for my $m (sort grep { !/^names/ } keys %{$after{$i} // {}}) {
      my $what = join ' ', @{$after{$i}{"names $m"}};
      $text .= "${ind}if (" . join(' | ', @{$after{$i}{$m}}) . ") { ACT_TELL(\"$what\") $m }\n";
    }
  }
  return $text;
}
# Whether a change of a variable is best watched within the statement.
sub inner {
  my ($s, $v) = @_;
  return !$s->{label} if $s->{k} eq 'if' || $s->{k} eq 'block';
  return $s->{k} eq 'leaf' && defined $s->{from} && !$var{$v}{shape}[0];
}
sub written {
  my ($s) = @_;
  return $s->{written} if $s->{written};
  my %w;
  if ($s->{k} eq 'leaf') { $w{$s->{w}[0]} = 1; }
  for my $t (@{$s->{then} // []}, @{$s->{else} // []}) {
    $w{$_} = 1 for keys %{written($t)};
    $s->{label} = 1 if $t->{k} eq 'label' || $t->{k} eq 'goto' || $t->{label};
  }
  return $s->{written} = \%w;
}
sub cxx_piece {
  my ($p) = @_;
  $pid = $p->{id};
  $old = 0;
  my %track = map { $_ => 1 } grep { !$own{$_} } keys %{$p->{wrote}};
  # One list of all statements; those of several functions are told apart while writing.
  my @l;
  for my $u (@{$p->{units}}) { for my $s (@{$u->{s}}) { $s->{fn} = $u->{fn}; push @l, $s; } }
  my $t = "static void act_$pid($P* __restrict vlSelf) {\n  uint64_t* const a VL_ATTR_UNUSED = vlSelf->__Vact.a;\n";
  my %declared;
  for my $v (sort grep { $own{$_} } keys %{$p->{named}}) {
    next if $declared{$cname{$v}}++;
    (my $type = $var{$v}{type}) =~ s{/\*.*?\*/}{};
    $t .= "  $type $cname{$v};\n";
    next if !$var{$v}{zero};
    $t .= $var{$v}{shape}[1] ? '  VL_ZERO_W(' . 32 * $var{$v}{shape}[1] . ", $cname{$v});\n" : "  $cname{$v} = 0;\n";
  }
  return $t . emit_units(\@l, \%track) . "}\n";
}
# emit() of statements of several functions: cxx() needs to know the function of each.
sub emit_units {
  my ($l, $track) = @_;
  for my $s (@$l) { bind_names($s, $s->{fn}); }
  $fn = '';
  return emit($l, $track, '  ');
}
sub bind_names {
  my ($s, $f) = @_;
  return if $s->{bound}++;
  $fn = $f;
  $s->{t} = cxx($s->{t}) if $s->{k} =~ /^(?:leaf|if|while)$/;
  $s->{lhs} = cxx($s->{lhs}) if $s->{k} eq 'leaf';
  $s->{from} = cxx($s->{from}) if defined $s->{from};
  bind_names($_, $f) for @{$s->{then} // []}, @{$s->{else} // []};
}

my %extern;
for my $f (keys %file) { $extern{$1} = 1 while $file{$f} =~ /^(extern const .*;)$/mg; }
my $common = join("\n", sort keys %extern) . <<"END";

#ifdef RNIC_ACTIVITY_CHECK
#define ACT_TELL(what) vlSelf->__Vact.changed = what;
#define ACT_ALL true
#else
#define ACT_TELL(what)
#define ACT_ALL false
#endif
template <class T>
static inline bool act_differ(const T& x, const T& y) {
  constexpr size_t n = sizeof(T);
  if (n > 256) return memcmp(&x, &y, n) != 0;
  uint64_t d = 0;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t p, q;
    memcpy(&p, reinterpret_cast<const char*>(&x) + i, 8);
    memcpy(&q, reinterpret_cast<const char*>(&y) + i, 8);
    d |= p ^ q;
  }
  for (; i < n; i++) d |= static_cast<uint64_t>(reinterpret_cast<const char*>(&x)[i] ^ reinterpret_cast<const char*>(&y)[i]);
  return d != 0;
}
template <class T>
static inline void act_copy(T& to, const T& from) {
  memcpy(static_cast<void*>(&to), &from, sizeof(T));
}
// Runs the pieces of a mask in their order. A piece may set bits behind it, for this turn, and before it, for the next.
static inline void act_run($P* vlSelf, unsigned word, void (*const* piece)($P*)) {
  uint64_t& a = vlSelf->__Vact.a[word];
  uint64_t rest = ~0ULL;
#ifdef RNIC_ACTIVITY_CHECK
  for (unsigned k = 0; k < 64; k++) {
    if (piece[k] == nullptr) continue;
    const bool due = a >> k & 1;
    a &= ~(1ULL << k);
    vlSelf->__Vact.changed = nullptr;
    piece[k](vlSelf);
    if (!due && vlSelf->__Vact.changed != nullptr) {
      fprintf(stderr, "activity: piece %u was not due, but changed %s\\n", word * 64 + k, vlSelf->__Vact.changed);
      abort();
    }
  }
  (void)rest;
#else
  while (const uint64_t due = a & rest) {
    const uint64_t bit = due & -due;
    a ^= bit;
    rest = -(bit << 1);
    piece[__builtin_ctzll(due)](vlSelf);
  }
#endif
}
END

# The functions that were cut up go; their files take the pieces, about the same amount each.
my @files = do { my %s; grep { !$s{$_}++ } map { $func{$_}[0] } map { @{$_->{calls}} } @phase };
my %gone = map { $_ => 1 } map { (@{$_->{calls}}, "${P}___eval_$_->{name}") } @phase;
my ($total, $sum) = (0, 0);
$total += $_->{weight} for grep { defined } @piece;
my (%made, %runs);
for my $ph (@phase) {
  for my $w ($ph->{words}[0] .. $ph->{words}[1]) {
    my $f = $files[int($sum * @files / ($total + 1))];
    my @row;
    for my $id ($w * 64 .. $w * 64 + 63) {
      my $p = $piece[$id];
      if (!$p) { push @row, 'nullptr'; next; }
      $made{$f} .= cxx_piece($p);
      push @row, "act_$id";
      $sum += $p->{weight};
    }
    my $r = "${P}___act_word_$w";
    $made{$f} .= "void $r($P* vlSelf) {\n  static void (*const piece[64])($P*) = {" . join(', ', @row) . "};\n  act_run(vlSelf, $w, piece);\n}\n";
    push @{$runs{$ph->{name}}}, $w;
  }
}
my $inputs = '';
my $prev = '';
for my $v (sort grep { ($var{$_}{port} // '') eq 'in' && $told{$_} } keys %var) {
  (my $n = $v) =~ s/^vlSelf->//;
  my $m = masks($v, -1);
  my $ne = $var{$v}{shape}[1] ? "act_differ(vlSelf->__Vact.$n, $v)" : "vlSelf->__Vact.$n != $v";
  my $set = "vlSelf->__Vact.$n = $v;";
  $inputs .= "    if ($ne) { $set $m }\n";
  $prev .= "    $var{$v}{type} $n;\n";
}
# An evaluation: what inputs lead to without a register; then, at a rising edge, the rest.
my %call;
my $eval_decl = '';
for my $ph (@phase) {
  for my $w (@{$runs{$ph->{name}}}) {
    $eval_decl .= "void ${P}___act_word_$w($P* vlSelf);\n";
    $call{$ph->{name}} .= "if (ACT_ALL || a[$w]) ${P}___act_word_$w(vlSelf);\n";
  }
  $call{$ph->{name}} =~ s/^/    /mg;
}
$call{nba} =~ s/^/    /mg;
my $eval = <<"END";
    uint64_t* const a = vlSelf->__Vact.a;
$inputs$call{ico}    const CData clk = vlSelf->clk_i;
    if (clk & ~vlSelf->__Vtrigrprev__TOP__clk_i) {
$call{nba}    }
    vlSelf->__Vtrigrprev__TOP__clk_i = clk;
END

my %new;
for my $f (sort keys %file) {
  my $t = $file{$f};
  for my $g (keys %gone) {
    $t =~ s/^(?:VL_INLINE_OPT )?void $g\($P\* vlSelf\);\n//mg;
    $t =~ s/^(?:VL_INLINE_OPT )?void $g\($P\* vlSelf\) \{\n.*?^\}\n//msg;
  }
  if ($t =~ /^void ${P}___eval\($P\* vlSelf\) \{\n/m) {
    $made{$f} = ($made{$f} // '') . $eval_decl;
    $t =~ s/^(void ${P}___eval\($P\* vlSelf\) \{\n).*?^\}\n/$1$eval\}\n/ms;
  }
  $t =~ s/^(#include "$P\.h"\n)/$1$common/m;
  $t =~ s/^(void ${P}___eval\($P\* vlSelf\) \{\n)/$made{$f}$1/m or $t .= $made{$f} if defined $made{$f};
  $new{$f} = $t;
}
my $members = '';
for my $v (sort keys %promote) { (my $type = $var{$v}{type}) =~ s{/\*.*?\*/}{}; $members .= "    $type $promote{$v};\n"; }
my $all = '';
for my $w (0 .. $words - 1) {
  my $x = 0;
  for my $k (0 .. 63) { $x |= 1 << $k if $piece[$w * 64 + $k]; }
  $all .= sprintf ' a[%d] = 0x%xULL;', $w, $x;
}
$header =~ s{^(    // INTERNAL VARIABLES\n)}{    // Which pieces are to run, the inputs as they were, and variables between pieces (activity.pl)
    struct Activity {
    uint64_t a[$words];
    const char* changed;
$prev$members    Activity() { memset(static_cast<void*>(this), 0, sizeof *this); $all }
    } __Vact;

$1}m or give_up('no place in the header');
spew("$dir/$P.h", $header);
spew($_, $new{$_}) for sort keys %new;
my $count = grep { defined } @piece;
my $units = 0;
$units += @{$_->{units}} for @phase;
printf "activity: %d statements in %d pieces\n", $units, $count;
