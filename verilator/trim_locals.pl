#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Speeds up the C++ that Verilator 5.0 makes: usage trim_locals.pl FILE.cpp...
#
# Every call of a SystemVerilog function is inlined, and its arguments, result and locals become variables at the top of
# one big C++ function, each filled with zeros in every cycle, also when the call is not reached. For wide structs that
# costs more than the logic. This removes the fill of such a variable (__Vfunc_..., __Vdly...) if the next statement
# that names it overwrites all of it, so that the fill is never seen; all others stay.
use strict;
use warnings;

my ($seen, $cut) = (0, 0);
my @l;

# The statement that begins in line $_[0], on one line, and the line after it.
sub statement {
  my ($k) = @_;
  my $t = '';
  while ($k <= $#l) {
    my $x = $l[$k++];
    $x =~ s/^\s+|\s+$//g;
    $t .= $t eq '' ? $x : " $x";
    last if $x =~ /[;{}]$/;
  }
  return ($t, $k);
}

for my $file (@ARGV) {
  open(my $in, '<', $file) or die "$file: $!\n";
  @l = <$in>;
  close $in;
  my $begin = 0;
  my $changed = 0;
  for my $end (0 .. $#l) {
    next unless $l[$end] eq "}\n";
    my %fill;   # name -> [line, width], until its next use
    for my $k ($begin .. $end) {
      if ($l[$k] =~ /^\s*VL_ZERO_W\((\d+), (__V(?:func|dly)\w+)\);$/ && !exists $fill{$2}) {
        $fill{$2} = [$k, $1];
        $seen += $1;
        next;
      }
      while ($l[$k] =~ /(__V(?:func|dly)\w+)/g) {
        my $name = $1;
        my $f = delete $fill{$name} or next;
        my ($at, $w) = @$f;
        my $n = int(($w + 31) / 32);
        my ($t, $next) = statement($k);
        # The first use must be a write of all words that does not read the variable.
        my $whole = 0;
        if ($t !~ /\Q$name\E.*\Q$name\E/) {
          if ($t =~ /^VL_\w+_W\w*\($w,\s*\Q$name\E\s*[,)]/) {
            $whole = 1;
          } elsif ($t =~ /^\Q$name\E\[__Vilp\] =(?!=)/) {
            my $before = join(' ', map { my $x = $_; $x =~ s/^\s+|\s+$//g; $x } @l[$k - 2 .. $k - 1]);
            if ($before =~ /^__Vilp = 0U; while \(\(__Vilp <= (0x[0-9a-f]+|\d+)U\)\) \{$/) {
              my $last = $1;
              $last = hex $last if $last =~ /^0x/;
              $whole = $last == $n - 1;
            }
          } else {
            # word by word, all in a row
            $whole = 1;
            for my $i (0 .. $n - 1) {
              my $idx = $i < 10 ? "${i}U" : sprintf('0x%xU', $i);
              if ($t !~ /^\Q$name\E\[$idx\] =(?!=)/ || $t =~ /\Q$name\E.*\Q$name\E/) {
                $whole = 0;
                last;
              }
              ($t, $next) = statement($next) if $i < $n - 1;
            }
          }
        }
        if ($whole) {
          $l[$at] = "\n";
          $cut += $w;
          $changed = 1;
        }
      }
    }
    # never used: the fill has no effect
    for my $name (keys %fill) {
      $l[$fill{$name}[0]] = "\n";
      $cut += $fill{$name}[1];
      $changed = 1;
    }
    $begin = $end + 1;
  }
  next unless $changed;
  open(my $out, '>', $file) or die "$file: $!\n";
  print $out @l;
  close $out or die "$file: $!\n";
}
print "trim_locals: $cut of $seen bits of zero fill removed\n";
